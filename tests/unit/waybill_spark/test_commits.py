"""Commits are said again until Kafka has them, and then ever more rarely."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError

from builders import ORDERS_ID, TENANT, UID, make_commit
from waybill_shared.contract.codec import decode
from waybill_shared.contract.events import Commit, Fact
from waybill_shared.contract.words import Obstacle
from waybill_shared.process.clock import SystemClock
from waybill_spark.kafka.commit_emitter import LASTS_S, REPEAT_S_MAX, REPEAT_S_MIN, CommitEmitter
from waybill_spark.tracking.commits import Identity

DAY_S = 24 * 3600
Told = Callable[[KafkaError | None, None], None]


@dataclass
class Kafka:
    """A producer whose delivery reports come when it is polled."""

    sent: list[Commit] = field(default_factory=list)
    away: bool = False
    full: bool = False
    reports: list[Callable[[], None]] = field(default_factory=list)

    def produce(self, topic: str, *, key: str, value: bytes, on_delivery: Told) -> None:
        if self.full:
            raise BufferError
        body = decode(Fact, value).body
        assert isinstance(body, Commit)
        self.sent.append(body)
        error = KafkaError(KafkaError._MSG_TIMED_OUT) if self.away else None
        self.reports.append(lambda: on_delivery(error, None))

    def poll(self, timeout: float) -> None:
        due, self.reports = self.reports, []
        for report in due:
            report()


@dataclass
class Place:
    kafka: Kafka = field(default_factory=Kafka)
    now: float = 0.0

    def __post_init__(self) -> None:
        identity = Identity(tenant=TENANT, pipeline_uid=UID, generation=1, epoch=1)
        self.emitter = CommitEmitter(
            self.kafka,  # type: ignore[arg-type]
            "w.commits",
            identity,
            SystemClock(),
            now=lambda: self.now,
        )

    def wait(self, seconds: float) -> int:
        """How often something was sent meanwhile."""
        before, end = len(self.kafka.sent), self.now + seconds
        while self.now < end:
            self.now += 1
            self.emitter.repeat()
        return len(self.kafka.sent) - before


@pytest.fixture
def place() -> Place:
    return Place()


def commit(taken: int) -> Commit:
    return make_commit({(ORDERS_ID, 0): taken}, sequence=taken)


def test_an_idle_sink_says_its_commit_a_hundred_times_a_day(place: Place) -> None:
    place.emitter.emit(commit(1))
    place.wait(REPEAT_S_MAX)
    assert place.wait(DAY_S) <= DAY_S / REPEAT_S_MAX
    assert {each.batch.sequence for each in place.kafka.sent} == {1}


def test_what_kafka_did_not_take_is_said_again_at_once(place: Place) -> None:
    place.emitter.emit(commit(1))
    place.wait(DAY_S)
    place.kafka.away = True
    place.wait(REPEAT_S_MAX + 2)
    assert place.wait(60) >= 60 / (REPEAT_S_MIN + 2)
    place.kafka.away = False
    place.wait(REPEAT_S_MIN + 2)
    assert place.wait(60) < 6, "and rarely again"


def test_a_commit_that_found_no_room_is_sent_later(place: Place) -> None:
    place.kafka.full = True
    place.emitter.emit(commit(1))
    assert place.kafka.sent == []
    place.kafka.full = False
    assert place.wait(REPEAT_S_MIN + 1) == 1


def test_only_the_newest_is_said_again(place: Place) -> None:
    place.emitter.emit(commit(1))
    place.emitter.emit(commit(2))
    place.kafka.sent.clear()
    assert place.wait(60) > 0
    assert {each.batch.sequence for each in place.kafka.sent} == {2}


def test_nothing_is_sent_twice_while_it_is_on_its_way(place: Place) -> None:
    place.emitter.emit(commit(1))
    place.kafka.poll = lambda timeout: None  # type: ignore[method-assign]
    sent = place.wait(60)
    assert sent <= 1


def test_all_is_there_only_when_kafka_has_the_newest_commit_of_every_sink(place: Place) -> None:
    assert place.emitter.has_all(), "nothing was written"
    place.kafka.away = True
    place.emitter.emit(commit(1))
    assert not place.emitter.has_all()
    place.kafka.away = False
    place.wait(REPEAT_S_MIN + 1)
    assert place.emitter.has_all()
    place.emitter.emit(commit(2))
    assert place.emitter.has_all(), "its report came"
    place.kafka.full = True
    place.emitter.emit(commit(3))
    assert not place.emitter.has_all()


def test_commits_that_kafka_does_not_accept_for_a_while_are_an_obstacle(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.kafka.away = True
    place.emitter.emit(commit(1))
    place.wait(LASTS_S - 1)
    assert place.emitter.look() is None, "a leader may be elected"
    place.emitter.emit(commit(2))
    place.wait(2)
    assert [place.emitter.look() for _ in range(3)] == 3 * [Obstacle.COMMITS_NOT_ACCEPTED]
    (error,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert vars(error)["topic"] == "w.commits"
    assert "timed out" in vars(error)["reason"].lower()

    place.kafka.away = False
    place.wait(REPEAT_S_MIN + 1)
    assert place.emitter.look() is None
    place.wait(DAY_S)
    place.emitter.emit(commit(3))
    assert place.emitter.look() is None, "it counts from the first that is not there"


def test_a_commit_without_an_answer_is_an_obstacle_too(place: Place) -> None:
    """The client gives up a message after minutes only."""
    place.kafka.poll = lambda timeout: None  # type: ignore[method-assign]
    place.emitter.emit(commit(1))
    place.wait(LASTS_S + 1)
    assert place.emitter.look() is Obstacle.COMMITS_NOT_ACCEPTED
