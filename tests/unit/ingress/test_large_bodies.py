"""Bodies that go to Kafka in several pieces: what is written is covered, all else is told."""

import asyncio

import pytest

from unit.ingress.bodies import WholeBody
from unit.ingress.fakes import FakeKafka, pipeline, source, span
from unit.ingress.world import World
from waybill_ingress.adapters.http import bodies
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.app import records as app
from waybill_ingress.app.records import Receipt, Records
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.rows import Rejection, RowLimits
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal

LIMITS = RowLimits(records_max=1_000, record_bytes_max=1_000, bytes_max=10_000_000)
TEN = b"".join(b'{"id": %d}\n' % number for number in range(10))


@pytest.fixture(autouse=True)
def _pieces_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PIECE_RECORDS", 2)


def world_of(kafka: FakeKafka) -> World:
    world = World(pipeline(source()), kafka=kafka)
    world.records = Records(world.registry, kafka, kafka, world.mint, LIMITS, spool=RecordSpool)
    return world


def write(world: World, body: bytes = TEN, *, small: bool = True) -> Receipt:
    sent = WholeBody(body, small=small)
    return asyncio.run(world.records.write(ANYONE, "orders", "orders", sent, read_ndjson))


@pytest.mark.parametrize("small", [True, False])
def test_all_pieces_are_covered_by_one_token(small: bool) -> None:
    world = world_of(FakeKafka())
    assert write(world, small=small).accepted == 10
    assert [record.row for record in world.kafka.written] == [*range(10)]
    assert world.mint.parts[0].spans == (span(0, 0, 5), span(1, 0, 5))


def test_behind_a_piece_that_kafka_does_not_acknowledge_nothing_is_sent() -> None:
    world = world_of(FakeKafka(failing={5: "away"}))
    receipt = write(world, b"bad\n" + TEN)
    assert receipt.accepted == 5
    assert [each.index for each in receipt.rejected] == [0, 5, 7, 8, 9, 10]
    assert receipt.rejected[1] == Rejection(5, "away")
    assert receipt.rejected[2].reason.startswith("not sent, because kafka did not accept others")
    assert world.mint.parts[0].spans == (span(0, 0, 2), span(1, 0, 3))


def test_what_kafka_will_never_take_keeps_nothing_from_the_others() -> None:
    world = world_of(FakeKafka(refusing={2: "no key", 7: "no key"}))
    receipt = write(world)
    assert (receipt.accepted, [each.index for each in receipt.rejected]) == (8, [2, 7])


def test_more_that_is_missing_than_can_be_named_is_told_by_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "REJECTED_MAX", 3)
    world = world_of(FakeKafka(failing={3: "away"}))
    with pytest.raises(Refusal) as told:
        write(world, b"bad\n" + TEN)
    assert told.value.slug == "not_available_now"
    assert told.value.members["token"] == "wb1.token"
    assert told.value.members["accepted"] == 3
    assert told.value.members["not_sent_from"] == 5
    assert [each["index"] for each in told.value.members["rejected"]] == [0, 3]  # type: ignore[attr-defined]
    assert [record.row for record in world.kafka.written] == [1, 2, 4]
