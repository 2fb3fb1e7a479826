"""Others are told of each commit, phase and dead letter, once its slot has it."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from builders import (
    NOW,
    TENANT,
    UID,
    make_commit,
    make_definition,
    make_fact,
    make_range,
    with_batch,
)
from message_builders import make_letter, make_lifecycle
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact
from waybill_shared.contract.lifecycle_events import Condition, LifecycleEvent
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.words import EventType
from waybill_token_tracker.app import announcing
from waybill_token_tracker.app.announcing import Announced, Announcer, ReceivedMessage, SlotPosition
from waybill_token_tracker.core.announcements import LETTERS_MAX, OLD_MS

SOURCE = "/waybill/test"
LETTER = make_letter(17, topic_id="a", dead_partition=2, dead_offset=4)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "RETRY_S", 0.001)
    monkeypatch.setattr(announcing, "LOOK_S", 0.001)


class World:
    """A topic, how far its slot is, and what was told; offsets count with what is told."""

    def __init__(self, *messages: Fact | LifecycleEvent) -> None:
        self.received = [ReceivedMessage(number, each) for number, each in enumerate(messages)]
        self.at = 0
        self.sent: list[Announced] = []
        self.position: int | None = 1_000
        self.asked = 0
        self.faults: list[Exception] = []
        self.stop = threading.Event()

    @contextmanager
    def begin(self) -> Iterator["World"]:
        yield self

    def receive(self) -> Sequence[ReceivedMessage]:
        if self.at == len(self.received):
            self.stop.set()
        return self.received[self.at : self.at + 2]

    def send(self, announced: Sequence[Announced]) -> None:
        if self.faults:
            raise self.faults.pop()
        self.sent += announced
        self.at = min(len(self.received), self.at + 2)

    def position_of(self, tenant: str, pipeline_uid: str) -> SlotPosition | None:
        assert (tenant, pipeline_uid) == (TENANT, UID)
        self.asked += 1
        if self.position is not None and self.asked % 3 == 0:
            self.position += 1
        return None if self.position is None else SlotPosition(self.position, "orders")

    def run(self) -> list[Announced]:
        Announcer(self, self, SOURCE).run(self.stop)
        return self.sent


def dead(count: int, sequence: int = 1) -> Fact:
    letters = DeadLetters(stage="enrich", since=1, sequence=sequence, letters=(LETTER,) * count)
    return make_fact(letters)


def test_a_commit_is_told_with_what_is_visible_now() -> None:
    taken = make_range(start=4, end=9)
    begun = with_batch(replace(make_commit(version=7), inputs=(taken,)), started_at=NOW - 90)
    ((key, event),) = World(make_fact(begun)).run()
    assert (key, event.id, event.type) == (
        UID,
        f"commit.{UID}.enrich.lake@1.7f1a.0",
        EventType.STAGE_COMMITTED,
    )
    assert (event.tenant, event.pipeline, event.stage) == (TENANT, "orders", "enrich")
    assert event.subject.startswith("orders/enrich/")
    assert event.data["version"] == {"iceberg_snapshot_id": "7"}
    assert event.data["ranges"] == [{"topic": taken.topic, "partition": 0, "start": 4, "end": 9}]
    assert (event.data["started_at"], event.time) == (format_moment(NOW - 90), format_moment(NOW))


def test_a_change_of_phase_is_told_and_a_sign_of_life_is_not() -> None:
    sent = World(make_lifecycle(), make_lifecycle(kind="heartbeat")).run()
    ((key, event),) = sent
    assert (key, event.type, event.pipeline) == (UID, EventType.PIPELINE_PHASE, "orders")
    assert event.data["phase"] == make_lifecycle().phase


def test_a_table_that_was_kept_in_order_is_told_in_numbers() -> None:
    kept = TableMaintenance(
        stage="enrich", sink="lake", task="compact", done={"files": 12, "into": 1}
    )
    heard = replace(make_lifecycle(), kind="maintenance", phase_from=None, maintenance=kept)
    ((key, event),) = World(heard, heard).run()
    assert (key, event.type, event.subject) == (
        UID,
        EventType.TABLE_MAINTAINED,
        "orders/enrich/lake",
    )
    assert (event.pipeline, event.stage) == ("orders", "enrich")
    assert (event.data["sink"], event.data["task"]) == ("lake", "compact")
    assert event.data["done"] == {"files": 12, "into": 1}


def test_why_a_table_was_not_kept_in_order_is_told() -> None:
    kept = TableMaintenance(
        stage="enrich", sink="lake", task="compact", done={}, problem="its clock"
    )
    said = replace(make_lifecycle(), kind="maintenance", phase_from=None, maintenance=kept)
    ((_, event),) = World(said).run()
    assert (event.type, event.subject) == (EventType.TABLE_NOT_MAINTAINED, "orders/enrich/lake")
    assert (event.data["task"], event.data["problem"]) == ("compact", "its clock")


def test_a_stage_that_fails_alone_is_one_event_however_often_it_is_said() -> None:
    failed = Condition(stage="load", cause="stage_failed", since=NOW, message="m", hint="h")
    later = replace(failed, stage="enrich", since=NOW + 1)
    said = replace(make_lifecycle(), kind="heartbeat", phase_from=None, conditions=(failed,))
    found = World(said, said, replace(said, conditions=(failed, later))).run()
    assert [(event.type, event.subject) for _, event in found] == [
        (EventType.STAGE_FAILED, "orders/load"),
        (EventType.STAGE_FAILED, "orders/enrich"),
    ]
    assert (found[0][1].data["message"], found[0][1].data["hint"]) == ("m", "h")


def test_dead_letters_are_told_by_their_ids() -> None:
    (_, one), (_, many) = World(dead(1), dead(LETTERS_MAX + 1, 2)).run()
    assert (one.type, one.stage, one.data["count"]) == (EventType.DEAD_LETTER, "enrich", 1)
    assert (one.data["letters"], one.data["reasons"]) == (["orders.in.dlq:2:4:17"], ["malformed"])
    letters = many.data["letters"]
    assert isinstance(letters, list)
    assert (many.data["count"], len(letters)) == (LETTERS_MAX + 1, LETTERS_MAX)


def test_a_definition_is_nobodys_news() -> None:
    assert World(make_fact(make_definition())).run() == []


def test_nothing_is_told_before_its_slot_has_it() -> None:
    world = World(make_fact(make_commit()))
    world.position = 0
    world.run()
    assert (len(world.sent), world.position) == (1, 1)


def test_a_slot_that_is_gone_holds_nothing_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "SLOT_S", 0.01)
    world = World(make_fact(make_commit()))
    world.position = None
    ((_, event),) = world.run()
    assert (event.pipeline, event.subject.split("/")[0]) == (None, UID)


@pytest.mark.parametrize("fault", [Retryable("kafka is away"), RuntimeError("a fault of ours")])
def test_what_was_not_told_is_told_again(fault: Exception) -> None:
    world = World(*(make_fact(make_commit(sequence=number)) for number in range(5)))
    world.faults = [fault]
    sent = [each.event.id.rpartition(".")[2] for each in world.run()]
    assert sent == ["0", "1", "2", "3", "4"]


def test_what_drivers_say_again_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "SENT_MAX", 5)
    first, dying = make_fact(make_commit()), dead(1)
    others = [make_fact(make_commit(sequence=number)) for number in range(1, 9)]
    repeated = [each for other in others for each in (other, first, dying)]
    sent = World(first, dying, first, *repeated).run()
    ids = [each.event.id for each in sent]
    assert len(ids) == len(set(ids)) == 10


def test_a_commit_of_long_ago_is_no_news() -> None:
    commit = make_commit()
    late = replace(make_fact(commit), at=commit.batch.committed_at + OLD_MS + 1)
    assert World(late, make_fact(make_commit(sequence=1))).run()[0].event.id.endswith(".1")


def test_it_runs_beside_and_ends() -> None:
    world = World(make_lifecycle())
    with Announcer(world, world, SOURCE).run_in_thread():
        assert world.stop.wait(10)
    assert "events" not in {thread.name for thread in threading.enumerate()}
