"""What a runner finds of commands before its time: what was carried out, and what was answered."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from builders import make_record
from integration.conftest import Surroundings
from integration.topics import create_anew
from integration.waiting import eventually
from message_builders import make_command
from waybill_shared.contract import codec
from waybill_shared.contract.events import PipelineRecord, command_key
from waybill_shared.contract.words import OperationState
from waybill_shared.kafka import own_topics
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer, make_producer, produce_and_wait
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics, TopicRecreated
from waybill_shared.kafka.partition_producer import PartitionProducer
from waybill_shared.process.clock import SystemClock
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_stage_runner.adapters.publisher import KafkaPublisher
from waybill_stage_runner.adapters.recovery import KafkaRecovery
from waybill_stage_runner.app.ownership import Ownership
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.wiring import watch_topics

PARTITIONS = 8


@dataclass
class Adopting:
    records: list[PipelineRecord] = field(default_factory=list)

    answered: set[str] = field(default_factory=set)

    def adopt(self, record: PipelineRecord) -> None:
        self.records.append(record)

    def adopt_answered(self, commands: Iterable[str]) -> None:
        self.answered.update(commands)


def found(around: Surroundings) -> Adopting:
    adopting = Adopting()
    past = KafkaRecovery(topics_of(around), around.prefix)
    ownership = Ownership(past, lambda number: cast(Runner, adopting))
    ownership.acquire(range(PARTITIONS))
    return adopting


def carried_out(around: Surroundings) -> int:
    """Up to where a runner that starts now takes commands of the pipeline as done."""
    (record,) = found(around).records
    return record.commanded_at


def topics_of(around: Surroundings) -> OwnTopics:
    return watch_topics(make_admin(around.kafka), around.prefix)


def test_no_command_of_a_topic_that_was_created_anew_counts_as_done(around: Surroundings) -> None:
    producer = PartitionProducer(around.kafka, f"{around.prefix}/stage_runner/0")
    producer.claim()
    publisher = KafkaPublisher(producer, topics_of(around), around.prefix, SystemClock())
    publisher.change(replace(make_record(uid=str(uuid.uuid4())), commanded_at=41), None)
    assert carried_out(around) == 41

    create_anew(around, "commands")
    assert carried_out(around) == -1


@pytest.mark.parametrize("topic", ["commands", "commits"])
def test_a_runner_ends_when_a_topic_that_it_wrote_for_is_another(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """The next one says all definitions, which the new topic of commits does not hold."""
    monkeypatch.setattr(own_topics, "CHECK_INTERVAL_S", 0.0)
    topics = topics_of(around)
    topics.id_of(f"{around.prefix}.{topic}")
    topics.check()
    create_anew(around, topic)
    with pytest.raises(TopicRecreated, match=f"{around.prefix}.{topic} was created again"):
        topics.check()


def test_what_was_answered_is_known_to_the_runner_that_comes_next(around: Surroundings) -> None:
    producer = PartitionProducer(around.kafka, f"{around.prefix}/stage_runner/0")
    producer.claim()
    publisher = KafkaPublisher(producer, topics_of(around), around.prefix, SystemClock())
    refusal = Answer(command=make_command(id="refused"), state=OperationState.FAILED)
    publisher.answer(refusal, None, ())
    assert found(around).answered == {"refused"}


def test_what_was_answered_after_an_open_command_is_not_read_again(around: Surroundings) -> None:
    """Not even when its answer is gone from the topic of replies: the group itself knows."""
    send_commands(around, "open", "refused", "last")
    with reading(around) as commands:
        assert read_until(commands, "last") == ["open", "refused", "last"]
        commands.commit({"open"})
    send_commands(around, "after")
    with reading(around) as commands:
        assert read_until(commands, "after") == ["open", "after"]


def send_commands(around: Surroundings, *ids: str) -> None:
    producer = make_producer(around.kafka)
    for command in (make_command(id=each) for each in ids):
        key, value = command_key(command), codec.encode(command)
        produce_and_wait(producer, f"{around.prefix}.commands", key, value)


@contextmanager
def reading(around: Surroundings) -> Iterator[CommandReader]:
    """Read commands as one runner after the other does."""
    consumer = make_consumer(around.kafka, f"{around.prefix}.stage_runner")
    topics = topics_of(around)
    yield CommandReader(
        consumer,
        f"{around.prefix}.commands",
        acquire=lambda partitions: None,
        release=lambda partitions: None,
        membership=Membership(topics.admin),
        topics=topics,
    )
    consumer.close()


def read_until(commands: CommandReader, last: str) -> list[str]:
    """Return the ids of the commands that are handed out, up to this one."""
    found: list[str] = []

    def read() -> bool:
        command = commands.next(0.1)
        if command is not None:
            found.append(command[2].id)
            commands.finish()
        return last in found

    eventually(read)
    return found
