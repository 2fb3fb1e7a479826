"""Names of pipelines: which one a manifest changes, whose a name is, and who is first."""

import asyncio
from dataclasses import replace

import pytest

from unit.ingress.fakes import MANIFEST
from unit.ingress.naming import UIDS, Names, manifest_of, record
from waybill_ingress.app.renames import CHECK_AGE_MS_MAX
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.commands import Apply, Rename, Validate
from waybill_shared.contract.errors import Problem, Refusal, Retryable, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action

ORDERS = UIDS["orders"]


def test_name_is_reserved_under_its_own_key_before_the_pipeline_is_called_so() -> None:
    names = Names.of(record("orders"))
    operation = names.rename("orders", "sales")
    reserve, rename = names.sent
    assert reserve.body == Rename(name="sales", reserved_for=ORDERS, reserved_in=2)
    assert (reserve.pipeline, reserve.pipeline_uid != ORDERS) == ("sales", True)
    assert rename.body == Rename(name="sales", reserved_in=2)
    assert (rename.pipeline_uid, rename.pipeline, rename.id) == (ORDERS, "sales", str(operation))
    names.carry_out()
    assert names.living() == ["sales"]


def test_name_that_it_had_needs_no_reserving_and_the_present_one_neither() -> None:
    names = Names.of(record("sales", "orders"))
    names.rename("sales", "orders")
    names.rename("sales", "sales")
    assert [each.body for each in names.sent] == [Rename(name="orders"), Rename(name="sales")]


def test_rename_that_was_carried_out_is_done_by_the_former_name_too() -> None:
    names = Names.of(record("sales", "orders"))
    names.rename("orders", "sales")
    assert [each.body for each in names.sent] == [Rename(name="sales")]
    with pytest.raises(Refusal, match="'orders' is called 'sales' now"):
        names.rename("orders", "trade")


def test_name_that_was_reserved_before_ingress_died_is_not_reserved_again() -> None:
    names = Names.of(record("orders"), record("audit"))
    asyncio.run(names.renames.reserve(ANYONE, "orders", "sales", "r"))
    with pytest.raises(Refusal, match="'sales' was reserved for pipeline 'orders'") as raised:
        names.rename("audit", "sales")
    assert raised.value.slug is Slug.NAME_IN_USE
    assert "`waybill rename orders sales` goes on with it" in str(raised.value.members["hint"])
    with pytest.raises(Refusal, match="'sales' was reserved for pipeline 'orders'"):
        names.apply("sales")
    names.rename("orders", "sales")
    assert [each.action for each in names.sent] == [Action.RENAME] * 2
    names.carry_out()
    assert names.living() == ["audit", "sales"]


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("audit", "there is a pipeline 'audit'"),
        ("shop", "pipeline 'store' was called 'shop', and its tokens still mean it by that"),
    ],
)
def test_name_of_another_pipeline_is_refused(to: str, message: str) -> None:
    names = Names.of(record("orders"), record("audit"), record("store", "shop"))
    with pytest.raises(Refusal, match=message) as raised:
        names.rename("orders", to)
    assert (raised.value.slug, raised.value.slug.status) == (Slug.NAME_IN_USE, 409)
    assert names.sent == []


def test_names_of_a_deleted_pipeline_are_free() -> None:
    names = Names.of(record("orders"), replace(record("shop"), desired="deleted"))
    names.rename("orders", "shop")
    reserve, _ = names.sent
    assert (reserve.life, reserve.pipeline_uid != UIDS["shop"]) == (1, True)


def test_pipeline_that_is_not_there_is_not_renamed() -> None:
    with pytest.raises(Refusal) as raised:
        Names.of(record("audit")).rename("orders", "sales")
    assert raised.value.slug is Slug.PIPELINE_NOT_FOUND


def test_reserving_that_is_not_answered_in_time_goes_on_when_it_is_sent_again() -> None:
    names = Names.of(record("orders"))
    names.silent = True
    with pytest.raises(Retryable, match="it goes on"):
        names.rename("orders", "sales")
    names.silent = False
    names.rename("orders", "sales")
    names.carry_out()
    assert names.living() == ["sales"]


@pytest.mark.parametrize("by_manifest", [False, True])
def test_change_is_not_sent_without_the_name(by_manifest: bool) -> None:
    names = Names.of(record("orders"))
    text = manifest_of("sales", "orders")
    asked = (
        names.commands.apply(ANYONE, "sales", text, "r")
        if by_manifest
        else names.commands.rename(ANYONE, "orders", "sales", "r")
    )
    with pytest.raises(Retryable, match="the name sales was not reserved"):
        asyncio.run(asked)
    assert names.sent == []


# --- races: what one has sent is carried out after the other has looked


def test_change_in_between_frees_the_name_and_the_rename_is_refused() -> None:
    names = Names.of(record("orders"), record("audit"))
    asyncio.run(names.renames.reserve(ANYONE, "orders", "sales", "r"))
    rename = asyncio.run(names.commands.rename(ANYONE, "orders", "sales", "r"))
    changed = names.records[ORDERS]
    names.records[ORDERS] = replace(changed, generation=changed.generation + 1)
    names.rename("audit", "sales")
    reply = asyncio.run(names.within(ANYONE, rename, 0))
    assert reply is not None
    assert reply.problem == Slug.SUPERSEDED
    assert names.living() == ["orders", "sales"]
    assert [each.life for each in names.sent] == [0, 0, 1, 0], "the name begins its next life"


def test_change_before_the_rename_is_sent_lets_it_begin_again() -> None:
    names = Names.of(record("orders"))
    asyncio.run(names.renames.reserve(ANYONE, "orders", "sales", "r"))
    changed = names.records[ORDERS]
    names.records[ORDERS] = replace(changed, generation=changed.generation + 1)
    asyncio.run(names.catch_up())
    with pytest.raises(Retryable, match="the name sales was not reserved"):
        asyncio.run(names.commands.rename(ANYONE, "orders", "sales", "r"))
    names.rename("orders", "sales")
    names.carry_out()
    assert names.living() == ["sales"]


def test_of_two_renames_to_one_name_the_first_counts() -> None:
    names = Names.of(record("orders"), record("audit"))
    lagging = Names(names.records)
    asyncio.run(lagging.catch_up())
    names.rename("orders", "sales")
    names.carry_out()
    lagging.catch_up = _no_news  # type: ignore[method-assign]
    with pytest.raises(Refusal, match="it is another one's") as raised:
        lagging.rename("audit", "sales")
    assert (raised.value.slug, raised.value.members["hint"]) == (
        Slug.NAME_IN_USE,
        "choose another name",
    )
    assert names.living() == ["audit", "sales"]


def test_of_a_rename_and_a_new_pipeline_the_first_counts() -> None:
    names = Names.of(record("orders"))
    lagging = Names(names.records)
    asyncio.run(lagging.catch_up())
    lagging.catch_up = _no_news  # type: ignore[method-assign]
    text = manifest_of("sales").replace("sales.", "other.")
    asyncio.run(lagging.commands.apply(ANYONE, "sales", text, "r"))
    names.rename("orders", "sales")
    lagging.carry_out()
    names.carry_out()
    assert names.living() == ["sales"]


async def _no_news() -> bool:
    return True


# --- `was` in a manifest


def test_was_reserves_the_name_and_changes_the_pipeline_that_was_called_so() -> None:
    names = Names.of(record("orders"))
    operation = names.apply("sales", "orders")
    check, reserve, apply = names.sent
    assert isinstance(check.body, Validate)
    assert reserve.body == Rename(name="sales", reserved_for=ORDERS, reserved_in=2)
    assert isinstance(apply.body, Apply)
    assert apply.body.reserved_in == 2
    assert (apply.pipeline_uid, apply.pipeline, apply.id) == (ORDERS, "sales", str(operation))
    names.carry_out()
    assert names.living() == ["sales"]
    names.apply("sales", "orders")
    assert [each.action for each in names.sent[1:]] == ["rename", "apply", "apply"], "it may stay"


def test_was_gives_a_first_name_back() -> None:
    names = Names.of(record("sales", "orders"))
    names.apply("orders", "sales")
    (apply,) = names.sent
    assert (apply.action, apply.pipeline_uid) == ("apply", ORDERS)


@pytest.mark.parametrize(
    ("known", "name", "was", "message", "hint"),
    [
        ((), "sales", "orders", "no pipeline was ever called 'orders'", "take `was` out"),
        (("orders", "audit"), "audit", "orders", "'orders' still exists next to 'audit'", "delete"),
        (("audit",), "audit", "orders", "'audit' was never called 'orders'", "take `was` out"),
        (("trade was orders",), "sales", "orders", "'orders' is called 'trade' now", "was: trade"),
    ],
)
def test_was_that_does_not_say_which_one_is_refused(
    known: tuple[str, ...], name: str, was: str, message: str, hint: str
) -> None:
    names = Names.of(*(record(*each.split(" was ")) for each in known))
    for asked in (
        names.renames.reserve_for_apply(
            ANYONE, name, manifest_of(name, was), "r", allow_shared=False
        ),
        names.commands.validate(ANYONE, manifest_of(name, was), "r"),
    ):
        with pytest.raises(UserError, match=message) as raised:
            asyncio.run(asked)
        (problem,) = raised.value.problems
        assert (problem.path, problem.line) == ("was", 4)
        assert hint in problem.hint
    assert names.sent == []


def test_file_of_a_first_rename_undoes_no_second_one() -> None:
    names = Names.of(record("trade", "orders", "sales"))
    with pytest.raises(Refusal, match="'sales' is called 'trade' now"):
        names.apply("sales", "orders")


def test_conflict_with_others_is_found_before_the_name_is_reserved() -> None:
    names = Names.of(record("orders"), record("audit"))
    text = manifest_of("sales", "orders").replace("orders.out", "audit.in.dlq")
    with pytest.raises(UserError, match="dead letters"):
        asyncio.run(names.renames.reserve_for_apply(ANYONE, "sales", text, "r", allow_shared=False))
    assert names.sent == []


def test_what_the_check_of_a_runner_refuses_reserves_no_name() -> None:
    names = Names.of(record("orders"), record("audit"))
    names.wrong = (Problem(message="no such column", line=7, column=3, hint="there is id"),)
    with pytest.raises(UserError, match="no such column") as raised:
        names.apply("sales", "orders")
    assert (raised.value.problems, raised.value.slug) == (names.wrong, Slug.INVALID)
    (asked,) = names.sent
    assert isinstance(asked.body, Validate)
    names.rename("audit", "sales")
    names.carry_out()
    assert names.living() == ["orders", "sales"]


def test_manifest_that_is_sent_again_waits_for_the_same_check() -> None:
    names = Names.of(record("orders"))
    names.silent = True
    for _ in range(2):
        with pytest.raises(Retryable, match="the manifest of sales is not checked yet"):
            names.apply("sales", "orders")
    assert [each.action for each in names.sent] == ["validate"]
    names.silent = False
    names.apply("sales", "orders")
    assert [each.action for each in names.sent] == ["validate", "rename", "apply"]


def test_check_that_is_never_answered_is_sent_again() -> None:
    names = Names.of(record("orders"))
    names.silent = True
    for _ in range(2):
        with pytest.raises(Retryable):
            names.apply("sales", "orders")
        names.mint.now += CHECK_AGE_MS_MAX
    assert [each.action for each in names.sent] == ["validate"] * 2


def test_check_that_fails_reserves_no_name() -> None:
    names = Names.of(record("orders"))
    names.check_fails = Slug.TOO_MANY_CHECKS
    with pytest.raises(Refusal) as raised:
        names.apply("sales", "orders")
    assert raised.value.slug is Slug.TOO_MANY_CHECKS
    assert [each.action for each in names.sent] == ["validate"]


def test_pipeline_with_a_manifest_that_is_not_valid_any_more_gets_no_name() -> None:
    orders = record("orders")
    old = replace(orders.manifest, native=orders.manifest.native.replace("BIGINT", "NOTHING"))
    names = Names.of(replace(orders, manifest=replace(old, source=old.native)))
    with pytest.raises(UserError, match="NOTHING"):
        names.rename("orders", "sales")
    assert names.sent == []


def test_its_own_topics_are_no_conflict_with_it() -> None:
    """The same topics under another name are still those of one pipeline."""
    names = Names.of(record("orders"))
    names.apply("sales", "orders")
    *_, apply = names.sent
    assert isinstance(apply.body, Apply)
    assert apply.body.manifest.warnings == ()


def test_validation_reserves_no_name_and_is_about_the_pipeline_of_before() -> None:
    names = Names.of(record("orders"))
    asyncio.run(names.commands.validate(ANYONE, manifest_of("sales", "orders"), "r"))
    (asked,) = names.sent
    assert isinstance(asked.body, Validate)
    assert asked.body.about == ORDERS


def test_manifest_without_was_is_read_once() -> None:
    names = Names.of(record("orders"))
    asyncio.run(
        names.renames.reserve_for_apply(ANYONE, "orders", "no manifest", "r", allow_shared=False)
    )
    assert "was" not in MANIFEST
