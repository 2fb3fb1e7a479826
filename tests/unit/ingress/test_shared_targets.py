"""Sinks of two pipelines that write to one topic or table: what is refused, permitted, named."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import pytest

from builders import applied
from local_client import local_client
from unit.ingress.fakes import MANIFEST, FakeAnswers, FakeKafka, pipeline, source
from unit.ingress.in_memory import make_app
from unit.ingress.world import OTHER, World
from waybill_ingress.core.shared_targets import SharedTargets, find_shared
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Apply, Validate
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Command, PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.problems import Slug

TABLE: Final = "iceberg: {table: raw.orders}"
SHARED: Final = "iceberg: {table: raw.orders, shared: true}"
POSTGRES: Final = "postgres: {connection: shop, table: public.orders}"
TOPIC: Final = "kafka: {topic: orders.out}"
Ask = Callable[[World, Caller, str], Awaitable[object]]
ASKS: list[Ask] = [
    lambda world, caller, text: world.commands.apply(caller, "pays", text, "r"),
    lambda world, caller, text: world.commands.validate(caller, text, "r"),
]


def upsert(keys: str, more: str = "") -> str:
    return f"iceberg: {{table: raw.orders, mode: upsert, keys: [{keys}]{more}}}"


def manifest(name: str, sink: str) -> str:
    text = MANIFEST.replace("name: orders", f"name: {name}", 1)
    return text.replace("{name: out, kafka: {topic: orders.out}}", f"{{name: out, {sink}}}")


def record(name: str = "orders", sink: str = TABLE, **fields: object) -> PipelineRecord:
    """As it is once it was applied."""
    text = manifest(name, sink)
    made = read_manifest(text).model.stages[0].sinks[0]
    out = SinkDefinition(
        name="out",
        kind=made.kind,
        target=made.settings.target,
        topic_id=None,
        terminal=True,
        since=1,
    )
    stage = StageDefinition(name="copy", since=1, inputs=(source(),), sinks=(out,))
    found = replace(
        pipeline(source(), name=name), manifest=applied(text), pipeline_uid=f"uid-{name}"
    )
    return replace(found, stages=(stage,), **fields)  # type: ignore[arg-type]


def found(
    sink: str,
    *others: PipelineRecord,
    known: PipelineRecord | None = None,
    places: dict[str, str] | None = None,
) -> SharedTargets:
    lives = [*others, *([] if known is None else [known])]
    return find_shared(
        read_manifest(manifest("pays", sink)).model,
        known,
        lives,
        tenant=ANYONE.tenant,
        places=places or {},
    )


@pytest.mark.parametrize("ask", ASKS, ids=["apply", "check"])
@pytest.mark.parametrize(
    ("sink", "what"),
    [
        (TABLE, "iceberg lakehouse.raw.orders"),
        (POSTGRES, "postgres shop.public.orders"),
        (TOPIC, "kafka orders.out"),
    ],
)
def test_a_target_of_another_pipeline_is_refused_with_its_place(
    ask: Ask, sink: str, what: str
) -> None:
    world, text = World(record(sink=sink)), manifest("pays", sink)
    with pytest.raises(UserError) as raised:
        asyncio.run(ask(world, ANYONE, text))  # type: ignore[arg-type]
    (problem,) = raised.value.problems
    assert problem.message == f"{what} is written by sink 'out' of pipeline 'orders', too"
    assert "`shared: true` here and in sink 'out' of pipeline 'orders'" in problem.hint
    assert "--yes" in problem.hint
    assert problem.line == text.rstrip().count("\n") + 1
    assert problem.column is not None
    name = sink.rsplit(": ", maxsplit=1)[-1].rstrip("}")
    assert text.rstrip().splitlines()[-1][problem.column - 1 :].startswith(name)
    assert world.kafka.written == []


def test_each_has_a_slug_of_its_own() -> None:
    """But a check tells what `apply` would refuse, whatever the reason."""
    world = World(record(sink=upsert("id")))
    for keys, slug in (("id", Slug.TARGET_SHARED), ("name", Slug.KEYS_DIFFER)):
        text = manifest("pays", upsert(keys))
        with pytest.raises(UserError) as raised:
            asyncio.run(world.commands.apply(ANYONE, "pays", text, "r"))
        assert raised.value.slug is slug
        with pytest.raises(UserError) as raised:
            asyncio.run(world.commands.validate(ANYONE, text, "r"))
        assert raised.value.slug is Slug.INVALID


@pytest.mark.parametrize("action", ["apply", "validate"])
def test_who_allows_it_is_only_warned(action: str) -> None:
    world, text = World(record()), manifest("pays", TABLE)
    if action == "apply":
        asyncio.run(world.commands.apply(ANYONE, "pays", text, "r", allow_shared=True))
    else:
        asyncio.run(world.commands.validate(ANYONE, text, "r", allow_shared=True))
    (written,) = world.kafka.written
    body = decode(Command, written.value).body
    assert isinstance(body, Apply | Validate)
    (note,) = body.manifest.warnings
    assert note == (
        "sink out of stage copy: iceberg lakehouse.raw.orders is written by sink 'out' of"
        " pipeline 'orders', too"
    )


def test_both_must_say_that_it_is_shared() -> None:
    assert found(SHARED, record(sink=SHARED)).undeclared == ()
    assert "pipeline 'orders'" in found(SHARED, record(sink=SHARED)).notes[0]
    (theirs,) = found(SHARED, record()).undeclared
    assert theirs.hint.startswith("say `shared: true` in sink 'out' of pipeline 'orders', or")
    (ours,) = found(TABLE, record(sink=SHARED)).undeclared
    assert ours.hint.startswith("say `shared: true` here, or")
    third = record("third")
    (both,) = found(SHARED, record(sink=SHARED), third).undeclared
    assert "pipeline 'third'" in both.hint
    assert "pipeline 'orders' and 1 more" in both.message


def test_what_writes_elsewhere_is_nothing() -> None:
    others = [record(sink=TOPIC), record("b", "iceberg: {table: raw.pays}"), record("c", POSTGRES)]
    assert found(TABLE, *others) == SharedTargets()
    elsewhere = POSTGRES.replace("shop", "other")
    assert found(elsewhere, record(sink=POSTGRES)) == SharedTargets()
    assert found("console: {}", record(sink="console: {}")) == SharedTargets()


@pytest.mark.parametrize("more", ["", ", shared: true"])
def test_upserts_by_other_keys_are_refused_always(more: str) -> None:
    judged = found(upsert("id", more), record(sink=upsert("name, id", more)))
    (problem,) = judged.refused
    assert problem.message == (
        "iceberg lakehouse.raw.orders would be upserted by id, and sink 'out' of pipeline 'orders'"
        " does it by id, name"
    )
    assert judged.undeclared == ()
    same = found(upsert("id, name", more), record(sink=upsert("name, id", more)))
    assert same.refused == ()
    assert found(upsert("id"), record(sink=TABLE)).refused == ()


def test_what_a_pipeline_wrote_before_the_change_it_may_go_on_to_write() -> None:
    """As one that shared a table before anybody asked about it; it is still named."""
    judged = found(SHARED, record(), known=record("pays"))
    assert (judged.refused, judged.undeclared) == ((), ())
    assert "pipeline 'orders'" in judged.notes[0]
    other = record(sink=upsert("name"))
    assert found(upsert("id"), other, known=record("pays", upsert("id"))).refused == ()
    assert found(upsert("id"), other, known=record("pays", upsert("name"))).refused != ()
    assert found(TABLE, record(), known=record("pays", TOPIC)).undeclared != ()


def test_the_same_manifest_again_is_not_compared() -> None:
    known = record("pays")
    world = World(record(), known)
    asyncio.run(world.commands.apply(ANYONE, "pays", known.manifest.source, "r"))
    (written,) = world.kafka.written
    assert decode(Command, written.value).body == Apply(manifest=known.manifest)


def test_what_a_deleted_pipeline_wrote_is_a_note() -> None:
    gone = record(desired="deleted", updated_at=1)
    older = record("elder", TABLE, desired="deleted", updated_at=0)
    judged = found(TABLE, older, gone)
    assert (judged.refused, judged.undeclared) == ((), ())
    (note,) = judged.notes
    assert note == (
        "sink out of stage copy: iceberg lakehouse.raw.orders was written by sink 'out' of pipeline"
        " 'orders' and 1 more, deleted since; what it wrote stays there"
    )
    assert found(TOPIC, record(sink=TOPIC, desired="deleted")).notes != ()
    assert found(TABLE, gone, known=record("pays")).notes == ()


def test_an_earlier_life_of_the_same_name_is_named_too() -> None:
    gone = replace(record("pays", desired="deleted"), pipeline_uid="life-0")
    assert "was written by sink 'out' of pipeline 'pays'" in found(TABLE, gone).notes[0]


def test_of_another_tenant_only_that_there_is_one() -> None:
    world = World(record())
    with pytest.raises(UserError) as raised:
        asyncio.run(world.commands.apply(OTHER, "pays", manifest("pays", TABLE), "r"))
    (problem,) = raised.value.problems
    said = f"{problem.message} {problem.hint}"
    assert "is written by a pipeline of another tenant, too" in said
    assert "orders'" not in said
    theirs = record(sink=upsert("secret"), tenant="other")
    (keys,) = found(upsert("id"), theirs).refused
    assert "secret" not in f"{keys.message} {keys.hint}"


def test_two_connections_that_lead_to_one_place_are_one() -> None:
    other = record(sink=POSTGRES.replace("shop", "store"))
    assert found(POSTGRES, other) == SharedTargets()
    same = {"shop": "postgres db 5432 x", "store": "postgres db 5432 x"}
    (problem,) = found(POSTGRES, other, places=same).undeclared
    assert "pipeline 'orders' as store.public.orders, too" in problem.message


def test_a_manifest_that_is_refused_today_still_counts() -> None:
    """What it wrote to is in the record; whether it shares cannot be read."""
    old = replace(record(sink=SHARED), manifest=applied("version: 0\n"))
    assert found(SHARED, old).undeclared != ()


def test_what_was_applied_through_another_ingress_is_known() -> None:
    world = World()
    world.directory.told = [record()]
    with pytest.raises(UserError, match="pipeline 'orders'"):
        asyncio.run(world.commands.apply(ANYONE, "pays", manifest("pays", TABLE), "r"))


def test_over_http_it_is_a_conflict_that_a_parameter_permits() -> None:
    kafka, text = FakeKafka(), manifest("pays", TABLE)
    app = make_app(kafka, answers=FakeAnswers(), known_pipeline=record())
    with local_client(app) as client:
        refused = client.put("/v1/pipelines/pays", content=text)
        assert (refused.status_code, refused.json()["type"]) == (
            409,
            "urn:waybill:problem:target_shared",
        )
        (error,) = refused.json()["errors"]
        assert error["path"] == "stages.0.sinks.0.iceberg.table"
        assert error["line"] is not None
        assert kafka.written == []
        taken = client.put("/v1/pipelines/pays?allow_shared=true&wait=0", content=text)
        assert taken.status_code == 202

        checked = client.post("/v1/validate", json={"manifest": text})
        assert checked.json()["errors"] == [error]
        assert (
            client.post("/v1/validate", json={"manifest": text, "allow_shared": True}).status_code
            == 202
        )
