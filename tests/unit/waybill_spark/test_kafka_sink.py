"""When what a Kafka sink holds may be told: in that very topic, and not in one of its name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

import pytest

from builders import make_fence
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Output
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_spark.kafka import topic_ids
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget
from waybill_spark.tracking.sink import SinkLife
from waybill_spark.tracking.stopping import StageStopped

FENCE = replace(
    make_fence(), outputs=(Output(topic="t", topic_id="old", partition=0, first=0, end=5),)
)

ABSENT_S = 0.2


class Broker:
    """A topic that may become another one at any moment; `between` comes behind each look."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {"old": 5}
        self.topic_id: str | None = "old"
        self.lags = 0
        self.does_not_know = 0  # so many questions long
        """So many of the next questions go to one that still tells the topic before."""
        self.known_to_controller = False
        self.between: Callable[[], None] = lambda: None

    def identify(self, topics: Iterable[str]) -> Mapping[str, TopicIdentity]:
        found = self.topic_id
        self.between()
        if self.lags > 0:
            self.lags -= 1
            found = "before"
        if self.does_not_know > 0:
            self.does_not_know -= 1
            found = None
        if found is None:
            return {}
        return {"t": TopicIdentity(name="t", topic_id=found, partitions=(0,))}

    def absent(self, topic: str) -> bool:
        return not self.known_to_controller and self.topic_id is None

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]:
        found = self.topic_id
        self.between()
        if found is None:
            raise Retryable("topic t: unknown")
        return {0: self.ends[found]}

    def create_anew(self) -> None:
        self.topic_id, self.ends["new"] = "new", 100

    def delete(self) -> None:
        self.topic_id = None


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids, "POLL_S", 0.01)
    monkeypatch.setattr(topic_ids, "OTHER_ID_S", 0.1)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def sink(broker: Broker) -> KafkaSink:
    return make_sink(broker, absent_s=ABSENT_S)


def make_sink(broker: Broker, *, absent_s: float) -> KafkaSink:
    target = KafkaSinkTarget(topic="t", topic_id="old", absent_s=absent_s)
    life = SinkLife(name="out", since=1, fence_key="key")
    return KafkaSink(life, target, Fences(cast(KafkaAdmin, broker), "waybill"))


def test_what_every_reader_can_see_is_visible(sink: KafkaSink) -> None:
    assert sink.await_visible(FENCE)


@pytest.mark.parametrize("fate", [Broker.create_anew, Broker.delete])
def test_nothing_is_visible_in_a_topic_that_goes_while_it_is_looked_at(
    sink: KafkaSink, broker: Broker, fate: Callable[[Broker], None]
) -> None:
    """The ends of one that was created anew, and has grown past the old ones, say nothing."""
    broker.between = lambda: fate(broker)
    with pytest.raises(StageStopped):
        sink.await_visible(FENCE)


def test_what_has_gone_before_is_no_fault_that_passes(sink: KafkaSink, broker: Broker) -> None:
    broker.delete()
    with pytest.raises(StageStopped, match="gone"):
        sink.await_visible(FENCE)


def test_a_broker_that_lags_is_not_believed(sink: KafkaSink, broker: Broker) -> None:
    broker.delete()
    broker.known_to_controller = True
    with pytest.raises(Retryable, match="the controller has it"):
        sink.await_visible(FENCE)


def test_a_broker_may_learn_of_the_topic_in_the_meantime(broker: Broker) -> None:
    """Also where nobody may ask the controller."""
    broker.does_not_know = 30
    assert make_sink(broker, absent_s=120.0).await_visible(FENCE)


def test_an_id_that_the_topic_had_before_is_not_believed(sink: KafkaSink, broker: Broker) -> None:
    broker.lags = 2
    with pytest.raises(Retryable, match="brokers do not agree"):
        sink.await_visible(FENCE)
    assert sink.await_visible(FENCE)
