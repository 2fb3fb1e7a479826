"""Which commands a runner is handed, and which offsets are committed."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from message_builders import make_command
from unit.stage_runner.fakes import SameTopics
from waybill_shared.contract import codec
from waybill_shared.kafka.membership import Membership
from waybill_stage_runner.adapters.commands import CommandReader

TOPIC = "waybill.commands"
Callback = Callable[["Consumer", list[TopicPartition]], None]


class Message:
    def __init__(self, partition: int, offset: int) -> None:
        self._place = (partition, offset)

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def value(self) -> bytes:
        return codec.encode(make_command(id=f"c{self._place[0]}-{self._place[1]}"))

    def error(self) -> None:
        return None


class Consumer:
    """Hands over what is waiting; remembers where it was told to go, and what was committed."""

    def __init__(self) -> None:
        self.waiting: list[Message] = []
        self.sought: list[tuple[int, int]] = []
        self.committed: dict[int, int] = {}

    def subscribe(self, topics: list[str], on_assign: Callback, on_revoke: Callback) -> None:
        self.assign, self.revoke = on_assign, on_revoke

    def poll(self, timeout_s: float) -> Message | None:
        return self.waiting.pop(0) if self.waiting else None

    def seek(self, at: TopicPartition) -> None:
        self.sought.append((at.partition, at.offset))

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self.committed |= {at.partition: at.offset for at in offsets}


class Group(Membership):
    def __init__(self) -> None:
        pass

    def joined(self) -> None:
        pass

    left = check = joined


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@pytest.fixture
def commands(consumer: Consumer) -> CommandReader:
    queue = CommandReader(
        consumer,  # type: ignore[arg-type]
        TOPIC,
        acquire=lambda partitions: None,
        release=lambda partitions: None,
        membership=Group(),
        topics=SameTopics(),
    )
    consumer.assign(consumer, [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)])
    return queue


def handed(commands: CommandReader) -> tuple[int, int] | None:
    found = commands.next(0)
    return None if found is None else found[:2]


def test_a_command_that_is_for_later_lets_others_pass_and_comes_again(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(1, 3)]
    assert handed(commands) == (0, 7)
    commands.later()
    commands.commit(set())
    assert consumer.sought == [(0, 7)]
    assert consumer.committed == {0: 7}, "it was not carried out"
    assert handed(commands) == (1, 3)


def test_a_command_of_a_partition_that_was_taken_away_is_not_carried_out(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7)]
    assert handed(commands) == (0, 7)
    consumer.revoke(consumer, [TopicPartition(TOPIC, 0)])
    assert handed(commands) is None
    commands.commit(set())
    assert consumer.committed == {}


def test_offsets_are_committed_up_to_the_first_that_is_unanswered(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(0, 8), Message(0, 9)]
    for _ in range(3):
        assert handed(commands) is not None
        commands.finish()
    commands.commit({"c0-8"})
    assert consumer.committed == {0: 8}
    commands.commit(set())
    assert consumer.committed == {0: 10}


def test_offset_that_could_not_be_committed_is_committed_later(
    commands: CommandReader, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when no other command comes: else a restart would carry it out again, days later."""

    def fail(offsets: list[TopicPartition], asynchronous: bool) -> None:
        raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE))

    consumer.waiting = [Message(0, 7)]
    assert handed(commands) == (0, 7)
    commands.finish()
    with monkeypatch.context() as away:
        away.setattr(consumer, "commit", fail)
        commands.commit(set())
    commands.commit(set())
    assert consumer.committed == {0: 8}
