"""A process's voice, against a real Kafka: one transaction, and only the last owner has it."""

import uuid

import pytest
from confluent_kafka.admin import NewTopic

from containers import Servers
from integration.waiting import eventually
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka import partition_producer
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.partition_producer import PartitionLost, PartitionProducer
from waybill_shared.kafka.topics import create_missing
from waybill_shared.kafka.transactions import Outgoing


class Voices:
    """Runners of one partition, one after another, and what readers of its topic see."""

    def __init__(self, servers: Servers) -> None:
        self.kafka = servers.kafka
        self.topic = f"said-{uuid.uuid4().hex[:8]}"
        admin = make_admin(self.kafka)
        create_missing(admin, [NewTopic(self.topic, 1, 1)])
        eventually(lambda: admin.identify([self.topic]) and self._readable())

    def owner(self) -> PartitionProducer:
        producer = PartitionProducer(self.kafka, f"{self.topic}/stage_runner/0")
        producer.claim()
        return producer

    def words(self, *said: str) -> list[Outgoing]:
        return [Outgoing(topic=self.topic, key="k", value=word.encode()) for word in said]

    def read(self) -> list[str]:
        values = (message.value() for message in read_to_end(self.kafka, self.topic, [0]))
        return [value.decode() for value in values if value is not None]

    def _readable(self) -> bool:
        try:
            return self.read() == []
        except Retryable:
            return False


@pytest.fixture
def voices(servers: Servers) -> Voices:
    return Voices(servers)


def test_what_is_said_together_stands_together_and_where_it_is_told(voices: Voices) -> None:
    owner = voices.owner()
    assert owner.send(voices.words("a", "b")) == (0, 1)
    assert owner.send(voices.words("c")) == (3,), "the end of a transaction takes an offset too"
    assert voices.read() == ["a", "b", "c"]


def test_who_took_over_is_the_last_to_speak(
    voices: Voices, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the one before still had to say; 2d8c34a said it up to 300 s later."""
    before = voices.owner()
    before.send(voices.words("before"))
    after = voices.owner()
    assert voices.read() == ["before"]
    with pytest.raises(PartitionLost):
        before.send(voices.words("late"))
    after.send(voices.words("after"))
    with pytest.raises(PartitionLost):
        before.send(voices.words("later still"))
    assert voices.read() == ["before", "after"]
    caplog.clear()


def test_what_was_open_when_another_took_over_never_stands(
    voices: Voices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Written, acknowledged, and cut off before it was committed."""
    before, owners = voices.owner(), list[PartitionProducer]()

    def take_over(point: str) -> None:
        if point.endswith("before_commit"):
            owners.append(voices.owner())

    monkeypatch.setattr(partition_producer, "reach", take_over)
    with pytest.raises(PartitionLost):
        before.send(voices.words("open"))
    monkeypatch.undo()
    owners[0].send(voices.words("after"))
    assert voices.read() == ["after"]
    caplog.clear()


def test_after_a_fault_the_same_voice_goes_on(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not begin anew: the partition might be another's by then."""
    owner = voices.owner()
    monkeypatch.setattr(partition_producer, "STEP_TIMEOUT_S", 0.0)
    with pytest.raises(Retryable):
        owner.send(voices.words("too slow"))
    monkeypatch.undo()
    owner.send(voices.words("in time"))
    assert voices.read() == ["in time"]
