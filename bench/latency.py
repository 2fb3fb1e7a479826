"""R1 and R2: one record at a time, from the call that produces it until its effect can be seen."""

import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import count

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.contest import Contest, Turns
from bench.http import Http
from bench.pipelines import PARTITIONS, TopicPair, Waybill, order, pyspark, waybill
from bench.surroundings import Surroundings
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import (
    make_consumer,
    make_producer,
    position_of,
    produce_and_wait,
)

RECORDS = 20  # in each turn
WARM_UP_S = 60.0  # for both: until Java has compiled most of what it runs again and again
PAUSE_S_MAX = 0.2  # so that records come at any moment of whatever somebody does regularly
TIMEOUT_S = 60.0
SEED = 1


class Courier:
    """Sends records into one way, and learns when they are out of it."""

    def __init__(self, around: Surroundings, way: TopicPair, stack: ExitStack) -> None:
        self._way = way
        self._numbers = count()
        self._dice = random.Random(SEED)
        self._producer: Producer = make_producer(around.kafka, **{"linger.ms": 0})
        self._consumer = reader(around.kafka, way.target)
        stack.callback(self._consumer.close)

    def warm_up(self) -> None:
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            self._visible()

    def send(self) -> tuple[int, int]:
        """Partition and offset of one more record."""
        number = next(self._numbers)
        return position_of(
            produce_and_wait(self._producer, self._way.source, str(number), order(number))
        )

    def until_visible(self) -> float:
        """Median time until a reader of committed records has what was sent."""
        return self._median(self._visible)

    def until(self, known: "IssuedTokens") -> float:
        """Median time until Waybill says that it is complete."""

        return self._median(lambda: known.await_complete(*self.send()), after=self.take)

    def _visible(self) -> None:
        self.send()
        self.take()

    def take(self) -> None:
        message = self._consumer.poll(TIMEOUT_S)
        if message is None or message.error() is not None:
            raise TimeoutError(f"nothing came out of {self._way.target} in {TIMEOUT_S} s")

    def _median(self, one: Callable[[], None], after: Callable[[], None] = lambda: None) -> float:
        times = []
        for _ in range(RECORDS):
            time.sleep(self._dice.uniform(0, PAUSE_S_MAX))
            began = time.perf_counter()
            one()
            times.append(time.perf_counter() - began)
            after()
        return statistics.median(times)


class IssuedTokens:
    """A token for one position, and the wait for it, as a program would do that over HTTP."""

    def __init__(self, around: Surroundings, pipeline: Waybill, stack: ExitStack) -> None:
        self._pipeline = pipeline
        topic = pipeline.way.source
        self._topic = {
            "topic": topic,
            "topic_id": make_admin(around.kafka).identify([topic])[topic].topic_id,
        }
        self._ingress = stack.enter_context(closing(Http(pipeline.ingress)))
        self._status = stack.enter_context(closing(Http(pipeline.status)))

    def await_complete(self, partition: int, offset: int) -> None:
        position = {**self._topic, "partition": partition, "offset": offset}
        body = {"pipeline": self._pipeline.name, "positions": [position]}
        made = self._ingress.post("/v1/tokens", body)
        assert isinstance(made, dict)
        answer = self._status.ask("GET", f"/v1/tokens/{made['token']}?wait=30")
        assert isinstance(answer, dict)
        assert answer["outcome"] == "complete", answer


def reader(kafka: str, topic: str) -> Consumer:
    """At the topic's end, of committed records."""
    consumer = make_consumer(kafka, uuid.uuid4().hex, **{"fetch.wait.max.ms": 500})
    ends = make_admin(kafka).ends(topic, range(PARTITIONS))
    consumer.assign([TopicPartition(topic, partition, end) for partition, end in ends.items()])
    return consumer


def warm_up(*couriers: Courier) -> None:
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(courier.warm_up) for courier in couriers]:
            done.result()


@contextmanager
def complete_against_plain(around: Surroundings) -> Iterator[Turns]:
    with waybill(around) as pipeline, pyspark(around, "plain") as plain, ExitStack() as stack:
        ours, theirs = Courier(around, pipeline.way, stack), Courier(around, plain, stack)
        tokens = IssuedTokens(around, pipeline, stack)
        warm_up(ours, theirs)
        yield Turns(
            ours=lambda: ours.until(tokens),
            theirs=theirs.until_visible,
            also={"ours, until its row is visible": ours.until_visible},
        )


@contextmanager
def visible_against_tuned(around: Surroundings) -> Iterator[Turns]:
    with waybill(around) as pipeline, pyspark(around, "tuned") as tuned, ExitStack() as stack:
        ours, theirs = Courier(around, pipeline.way, stack), Courier(around, tuned, stack)
        warm_up(ours, theirs)
        yield Turns(ours=ours.until_visible, theirs=theirs.until_visible)


R1 = Contest(
    key="R1",
    what="one record, Kafka to Kafka, p50",
    ours="produced until its token is complete",
    theirs="plain PySpark: produced until its row is visible",
    unit="s",
    target=0.15,
    begin=complete_against_plain,
)
R2 = Contest(
    key="R2",
    what="one record, Kafka to Kafka, p50",
    ours="produced until its row is visible",
    theirs="PySpark with Waybill's settings, no tokens: the same",
    unit="s",
    target=1.15,
    begin=visible_against_tuned,
)
