"""Dead letters whose record a person has edited: checked, and replayed in place of the old."""

import asyncio
from dataclasses import replace

import pytest

from builders import applied
from unit.ingress.fakes import MANIFEST
from unit.ingress.graves import burying_pipeline
from unit.ingress.test_replays import World
from waybill_ingress.app.replays import ReplayReceipt
from waybill_ingress.core.edits import EDITED_BYTES_MAX, RecordEdit
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.replays import EditedRecord

GOOD = b'{"id": 7, "name": "ada"}'


@pytest.fixture
def world() -> World:
    return World()


def edit(world: World, letter: str, edit: RecordEdit, *, again: bool = False) -> ReplayReceipt:
    return asyncio.run(
        world.replays.replay(ANYONE, "orders", [letter], again=again, edit=edit, request_id="r")
    )


def refusal(world: World, letter: str, change: RecordEdit) -> Refusal:
    before = len(world.log.written)
    with pytest.raises(Refusal) as refused:
        edit(world, letter, change)
    assert len(world.log.written) == before, "nothing was written"
    return refused.value


def written(world: World) -> list[EditedRecord | None]:
    return [asked.edited for _, asked in world.log.written]


def test_the_message_has_the_edited_record_and_the_rest_is_as_it_was(world: World) -> None:
    letter = world.letters.bury(17)
    done = edit(world, letter, {"value": GOOD})
    assert (done.replayed, done.sinks) == (1, ("copy/copy", "copy/lake"))
    ((_, asked),) = world.log.written
    assert (str(asked.letter), asked.stage) == (letter, "copy@1")
    assert asked.edited == EditedRecord(key=b"\x00k", value=GOOD)
    assert asked.size == len(b"\x00k") + len(GOOD)
    edit(world, letter, {"value": GOOD, "key": None}, again=True)
    assert written(world)[-1] == EditedRecord(key=None, value=GOOD)


def test_an_edited_key_alone_leaves_the_value(world: World) -> None:
    edit(world, world.letters.bury(17), {"key": b"x"})
    assert written(world) == [EditedRecord(key=b"x", value=b'{"id": 17}')]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id": "seven"}', "id: BIGINT"),
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"id": 1, "id": 2}', "twice"),
        (None, "no value"),
        (b'{"name": "%s"}' % (b"x" * EDITED_BYTES_MAX), f"{EDITED_BYTES_MAX} is the most"),
    ],
    ids=["type", "no JSON", "no text", "twice", "none", "size"],
)
def test_what_does_not_fit_the_schema_is_refused(
    world: World, value: bytes | None, reason: str
) -> None:
    refused = refusal(world, world.letters.bury(17), {"value": value})
    assert refused.slug == "records_rejected"
    assert "the edited record does not fit input 'orders'" in refused.detail
    assert reason in refused.detail


def test_an_input_of_any_bytes_accepts_any(world: World) -> None:
    manifest = MANIFEST.replace('schema: "id BIGINT, name STRING"', "format: raw")
    manifest = manifest.replace("    key: name\n", "")
    world.directory.records["orders"] = replace(burying_pipeline(), manifest=applied(manifest))
    letter = world.letters.bury(17)
    for number, value in enumerate((b"\xff", None)):
        edit(world, letter, {"value": value}, again=number > 0)
    assert [each and each.value for each in written(world)] == [b"\xff", None]
    too_long = refusal(world, world.letters.bury(3), {"value": b"x" * (EDITED_BYTES_MAX + 1)})
    assert too_long.slug == "records_rejected"


def test_the_same_edit_again_is_the_same_token(world: World) -> None:
    letter = world.letters.bury(17)
    first = edit(world, letter, {"value": GOOD})
    assert edit(world, letter, {"value": GOOD}) == replace(first, replayed=0, already=1)
    assert world.replay(letter).token == first.token, "as it was, it was replayed, too"
    assert len(world.log.written) == 1


@pytest.mark.parametrize(("before", "said"), [(None, "as it was"), (GOOD, "with another edit")])
def test_another_edit_of_what_was_replayed_is_refused_unless_it_is_to_happen_again(
    world: World, before: bytes | None, said: str
) -> None:
    letter = world.letters.bury(17)
    if before is None:
        world.replay(letter)
    else:
        edit(world, letter, {"value": before})
    change: RecordEdit = {"value": b'{"id": 8}'}
    refused = refusal(world, letter, change)
    assert (refused.slug, said in refused.detail) == ("replayed_before", True)
    again = edit(world, letter, change, again=True)
    assert (again.replayed, again.already) == (1, 0)
    assert edit(world, letter, change).token == again.token


def test_a_letter_that_cannot_be_replayed_cannot_be_edited(world: World) -> None:
    lost = world.letters.bury(2, stage="gone")
    assert refusal(world, lost, {"value": GOOD}).slug == "sinks_gone"


@pytest.mark.parametrize(("value", "fits"), [(b'{"any": 1}', True), (b"[1]", False)])
def test_what_is_between_stages_is_an_object_of_any_columns(
    world: World, value: bytes, fits: bool
) -> None:
    record = burying_pipeline()
    (stage,) = record.stages
    inner = replace(stage.inputs[0], name="inner", root=False)
    world.directory.records["orders"] = replace(record, stages=(replace(stage, inputs=(inner,)),))
    letter = world.letters.bury(17)
    if fits:
        assert edit(world, letter, {"value": value}).replayed == 1
    else:
        assert refusal(world, letter, {"value": value}).slug == "records_rejected"
