"""The consumer groups that show lag, in a real Kafka."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from builders import TENANT, make_definition, make_sink, make_stage
from containers import Servers
from integration.waiting import eventually
from kafka_groups import group_names, group_offsets
from scraping import read_scrape
from waybill_shared.contract.events import Definition, InputDefinition
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.vectors import ENDLESS, Vector
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.process import metrics
from waybill_token_tracker.adapters.groups import ConsumerGroups
from waybill_token_tracker.adapters.topics import KafkaTopics
from waybill_token_tracker.app.lag import LagWatch

RECORDS = 10


@dataclass(frozen=True)
class Place:
    """A topic of two partitions, ten records in the first, and the pipeline `orders` reading it."""

    kafka: KafkaAdmin
    prefix: str
    topic: str

    @property
    def group(self) -> str:
        return f"{self.prefix}.orders.enrich"

    def topic_id(self) -> str:
        return self.kafka.identify([self.topic])[self.topic].topic_id

    def create(self) -> None:
        self.kafka.client.create_topics([NewTopic(self.topic, 2, 1)])[self.topic].result()
        eventually(lambda: self.kafka.identify([self.topic]))

    def delete(self) -> None:
        self.kafka.client.delete_topics([self.topic])[self.topic].result()
        eventually(lambda: not self.kafka.identify([self.topic]))

    def slot(self, *, deleted: bool = False, **sinks: Vector) -> Slot:
        """Frontiers by sink."""
        source = InputDefinition(
            name="orders", topic=self.topic, topic_id=self.topic_id(), root=True, bases={}
        )
        stage = make_stage(inputs=(source,), sinks=tuple(make_sink(name) for name in sinks))
        definition: Definition = make_definition(stage, deleted=deleted)
        return Slot(
            tenant=TENANT,
            pipeline_uid=str(uuid.uuid4()),
            definition=definition,
            sinks={f"enrich/{name}@1": SinkState(frontier=at) for name, at in sinks.items()},
        )

    def at(self, *offsets: int) -> Vector:
        """By partition."""
        return {(self.topic_id(), partition): at for partition, at in enumerate(offsets)}

    def offsets(self) -> dict[tuple[str, int], int]:
        return group_offsets(self.kafka, self.group)


@pytest.fixture
def place(servers: Servers) -> Place:
    name = f"t{uuid.uuid4().hex[:10]}"
    place = Place(make_admin(servers.kafka), name, f"{name}.in")
    place.create()
    producer = Producer({"bootstrap.servers": servers.kafka})
    for number in range(RECORDS):
        producer.produce(place.topic, value=str(number), partition=0)
    assert producer.flush(10) == 0
    return place


@pytest.fixture
def watch(place: Place) -> LagWatch:
    return LagWatch(KafkaTopics(place.kafka), ConsumerGroups(place.kafka), place.prefix)


def looks(watch: LagWatch, *slots: Slot) -> None:
    watch.show(slots)
    watch.look()


def lag(sink: str) -> float | None:
    shown = read_scrape(metrics.text_of("token_tracker", {}).decode())
    return shown.value("waybill_lag_offsets", pipeline="orders", stage="enrich", sink=sink)


def test_a_group_stands_where_the_slowest_sink_is(place: Place, watch: LagWatch) -> None:
    looks(watch, place.slot(lake=place.at(9), copy=place.at(4)))

    assert place.offsets() == {(place.topic, 0): 4, (place.topic, 1): 0}
    assert (lag("lake"), lag("copy")) == (1, 6)


def test_what_is_behind_every_offset_is_not_told(place: Place, watch: LagWatch) -> None:
    looks(watch, place.slot(lake=place.at(ENDLESS, 0)))

    assert place.offsets() == {(place.topic, 1): 0}


def test_an_offset_of_a_topic_that_is_gone_is_not_told_of_the_next_one(
    place: Place, watch: LagWatch
) -> None:
    before = place.slot(lake=place.at(9))
    place.delete()
    place.create()

    looks(watch, before)

    assert place.offsets() == {}
    assert lag("lake") is None


def test_a_group_that_somebody_deletes_is_written_again(place: Place, watch: LagWatch) -> None:
    slot = place.slot(lake=place.at(9))
    looks(watch, slot)
    place.kafka.client.delete_consumer_groups([place.group])[place.group].result()

    watch._rewrite_at = 0.0  # a minute later
    looks(watch, slot)

    assert place.offsets()[place.topic, 0] == 9


def test_the_group_of_a_deleted_pipeline_goes_unless_its_name_lives_again(
    place: Place, watch: LagWatch
) -> None:
    living = place.slot(lake=place.at(9))
    deleted = place.slot(lake=place.at(9), deleted=True)
    looks(watch, living, deleted)
    assert group_names(place.kafka, place.prefix) == {place.group}

    looks(watch, deleted)

    assert group_names(place.kafka, place.prefix) == set()


def test_a_group_that_cannot_be_written_is_counted_and_tried_again(
    servers: Servers, place: Place, watch: LagWatch
) -> None:
    slot = place.slot(lake=place.at(9))
    with member(servers.kafka, place):
        before = failures()
        looks(watch, slot)
        assert failures() == before + 1

    def written() -> bool:
        watch.look()
        return bool(place.offsets())

    eventually(written)


def failures() -> float:
    shown = read_scrape(metrics.text_of("token_tracker", {}).decode())
    return shown.value("waybill_group_failures_total") or 0


@contextmanager
def member(kafka: str, place: Place) -> Iterator[None]:
    """Somebody who reads under the name of the group."""
    consumer = make_consumer(kafka, place.group)
    joined: list[object] = []
    consumer.subscribe([place.topic], on_assign=lambda consumer, places: joined.append(places))
    eventually(lambda: (consumer.poll(0.05), joined)[1])
    yield
    consumer.close()
