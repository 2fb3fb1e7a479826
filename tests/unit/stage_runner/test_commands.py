"""Which commands a runner is handed, and which offsets are committed."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from message_builders import make_command
from unit.stage_runner.fakes import SameTopics
from waybill_shared.contract import codec
from waybill_shared.kafka.membership import Membership
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_stage_runner.core.pipelines.command_progress import OPEN_MAX

METADATA_BYTES_MAX = 4096  # as a broker has it by default
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

    def __init__(self, group: dict[int, TopicPartition] | None = None) -> None:
        self.waiting: list[Message] = []
        self.sought: list[tuple[int, int]] = []
        self.group = {} if group is None else group

    def subscribe(self, topics: list[str], on_assign: Callback, on_revoke: Callback) -> None:
        self.assign, self.revoke = on_assign, on_revoke

    def poll(self, timeout_s: float) -> Message | None:
        return self.waiting.pop(0) if self.waiting else None

    def seek(self, at: TopicPartition) -> None:
        self.sought.append((at.partition, at.offset))

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        self.group |= {at.partition: at for at in offsets}
        return offsets

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [self.group.get(at.partition, at) for at in asked]

    @property
    def offsets(self) -> dict[int, int]:
        return {partition: at.offset for partition, at in self.group.items()}


class Refused:
    error = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)

    def __init__(self, partition: int) -> None:
        self.partition = partition


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
    return reader(consumer)


def reader(consumer: Consumer) -> CommandReader:
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


def read_all(consumer: Consumer, commands: CommandReader, unanswered: set[str]) -> list[int]:
    """The offsets of the commands that are handed out of all that wait. Then commit."""
    found = []
    while consumer.waiting:
        command = handed(commands)
        if command is not None:
            found.append(command[1])
            commands.finish()
    commands.commit(unanswered)
    return found


def next_reader(before: Consumer, first: int, end: int) -> tuple[Consumer, CommandReader]:
    """Return that of the runner that takes over, and reads these offsets."""
    consumer = Consumer(before.group)
    after = reader(consumer)
    consumer.waiting = [Message(0, offset) for offset in range(first, end)]
    return consumer, after


def test_a_command_that_is_for_later_lets_others_pass_and_comes_again(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(1, 3)]
    assert handed(commands) == (0, 7)
    commands.later()
    commands.commit(set())
    assert consumer.sought == [(0, 7)]
    assert consumer.offsets == {0: 7}, "it was not carried out"
    assert handed(commands) == (1, 3)


def test_a_command_of_a_partition_that_was_taken_away_is_not_carried_out(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7)]
    assert handed(commands) == (0, 7)
    consumer.revoke(consumer, [TopicPartition(TOPIC, 0)])
    assert handed(commands) is None
    commands.commit(set())
    assert consumer.offsets == {}


def test_offsets_are_committed_up_to_the_first_that_is_unanswered(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(0, 8), Message(0, 9)]
    for _ in range(3):
        assert handed(commands) is not None
        commands.finish()
    commands.commit({"c0-8"})
    assert consumer.offsets == {0: 8}
    commands.commit(set())
    assert consumer.offsets == {0: 10}


def test_the_next_runner_gets_only_the_commands_that_are_open(
    commands: CommandReader, consumer: Consumer
) -> None:
    """However long ago the others were answered: one that was refused takes no effect later."""
    consumer.waiting = [Message(0, offset) for offset in range(7, 12)]
    assert read_all(consumer, commands, {"c0-7", "c0-10"}) == [7, 8, 9, 10, 11]
    assert consumer.offsets == {0: 7}

    second, commands = next_reader(consumer, 7, 9)
    assert read_all(second, commands, {"c0-7"}) == [7], "it ends before it has read the rest"

    third, commands = next_reader(second, 7, 13)
    assert read_all(third, commands, {"c0-10"}) == [7, 10, 12]
    assert third.offsets == {0: 10}

    last, commands = next_reader(third, 10, 13)
    assert read_all(last, commands, set()) == [10]
    assert last.offsets == {0: 13}


def test_a_command_that_is_for_later_is_open_to_the_next_runner(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(0, 8)]
    assert handed(commands) == (0, 7)
    commands.finish()
    assert handed(commands) == (0, 8)
    commands.later()
    commands.commit({"c0-7"})
    assert read_all(*next_reader(consumer, 7, 9), set()) == [7, 8]


def test_an_open_command_that_is_gone_from_the_topic_holds_up_nothing(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(0, 8)]
    read_all(consumer, commands, {"c0-7"})
    after, commands = next_reader(consumer, 8, 9)
    assert read_all(after, commands, set()) == []
    assert after.offsets == {0: 9}


def test_all_is_read_again_if_somebody_moves_the_group_back(
    commands: CommandReader, consumer: Consumer
) -> None:
    consumer.waiting = [Message(0, 7), Message(0, 8), Message(0, 9)]
    read_all(consumer, commands, {"c0-7"})
    assert read_all(*next_reader(consumer, 5, 10), set()) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("metadata", ["", "moved by a person", "1,", "-3"])
def test_metadata_of_others_say_nothing(consumer: Consumer, metadata: str) -> None:
    consumer.group = {0: TopicPartition(TOPIC, 0, 7, metadata)}
    assert read_all(*next_reader(consumer, 7, 9), set()) == [7, 8]


def test_no_more_commands_are_read_than_the_metadata_can_list(
    commands: CommandReader, consumer: Consumer
) -> None:
    offsets = [number * 10**8 for number in range(1, OPEN_MAX + 2)]
    consumer.waiting = [Message(0, offset) for offset in offsets]
    unanswered = {f"c0-{offset}" for offset in offsets}
    assert read_all(consumer, commands, unanswered) == offsets[:-1]
    assert consumer.sought == [(0, offsets[-1])], "it is read when one of the others is answered"
    assert len(consumer.group[0].metadata or "") < METADATA_BYTES_MAX

    consumer.waiting = [Message(0, offsets[-1])]
    commands.commit(unanswered - {f"c0-{offsets[5]}"})
    assert read_all(consumer, commands, unanswered) == offsets[-1:]


def test_an_offset_is_committed_once(commands: CommandReader, consumer: Consumer) -> None:
    """Not in each round while a command is open."""
    consumer.waiting = [Message(0, 7), Message(0, 8)]
    read_all(consumer, commands, {"c0-7"})
    consumer.group.clear()
    commands.commit({"c0-7"})
    assert consumer.offsets == {}


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
    assert consumer.offsets == {0: 8}


def test_offset_that_one_partition_refuses_is_committed_later(
    commands: CommandReader, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client raises nothing then: it names the partition."""

    def refuse(offsets: list[TopicPartition], asynchronous: bool) -> list[Refused]:
        return [Refused(at.partition) for at in offsets]

    consumer.waiting = [Message(0, 7)]
    with monkeypatch.context() as away:
        away.setattr(consumer, "commit", refuse)
        read_all(consumer, commands, set())
    commands.commit(set())
    assert consumer.offsets == {0: 8}
