"""R3, R16 and R24: how many records a stage takes in a second while they pour in."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from confluent_kafka import Producer

from bench.contest import Contest, Turns
from bench.http import Http
from bench.latency import reader
from bench.pipelines import TopicPair, Waybill, order, pyspark, waybill
from bench.surroundings import Surroundings

RECORDS = 200_000  # in each turn
AT_ONCE = 10_000
ASKING = 4
BAD_EVERY = 100
BAD = b'{"order_id": 1, "customer": "ada", "amou'
BUDGET = "deadLetter: {budget: 10000 per 1 second}\n"  # of a batch of 50,000, one of a hundred
POLL_S = 0.1
TIMEOUT_S = 180.0


class Flood:
    """Pours records into one way, and counts those that come out."""

    def __init__(self, around: Surroundings, way: TopicPair, stack: ExitStack) -> None:
        options = {"bootstrap.servers": around.kafka, "queue.buffering.max.messages": RECORDS}
        self._producer = Producer({**options, "acks": "all", "enable.idempotence": True})
        self._way = way
        self._consumer = reader(around.kafka, way.target)
        stack.callback(self._consumer.close)

    def rate(self, bad_every: int = 0) -> float:
        """Records per second, from the first one's produce until the last one is visible.

        One of so many is no JSON, and never comes out.
        """
        bad = range(0, RECORDS, bad_every) if bad_every else ()
        began = time.perf_counter()
        for number in range(RECORDS):
            self._producer.produce(self._way.source, value=BAD if number in bad else order(number))
        self._producer.flush()
        left = RECORDS - len(bad)
        while left > 0:
            left -= len(self._consumer.consume(AT_ONCE, POLL_S))
            if time.perf_counter() - began > TIMEOUT_S:
                raise TimeoutError(f"{left} records did not come out in {TIMEOUT_S} s")
        return RECORDS / (time.perf_counter() - began)


@contextmanager
def ours_against_tuned(around: Surroundings) -> Iterator[Turns]:
    with waybill(around) as pipeline, pyspark(around, "tuned") as tuned, ExitStack() as stack:
        ours, theirs = Flood(around, pipeline.way, stack), Flood(around, tuned, stack)
        yield Turns(ours=ours.rate, theirs=theirs.rate)


@contextmanager
def asked_against_unasked(around: Surroundings) -> Iterator[Turns]:
    with waybill(around) as pipeline, ExitStack() as stack:
        flood = Flood(around, pipeline.way, stack)

        def asked() -> float:
            with asking(pipeline):
                return flood.rate()

        yield Turns(ours=asked, theirs=flood.rate)


@contextmanager
def bad_against_clean(around: Surroundings) -> Iterator[Turns]:
    with waybill(around, BUDGET) as pipeline, ExitStack() as stack:
        flood = Flood(around, pipeline.way, stack)
        yield Turns(ours=lambda: flood.rate(BAD_EVERY), theirs=flood.rate)


@contextmanager
def asking(pipeline: Waybill) -> Iterator[None]:
    """Somebody wants to know of all that has come so far, again and again, until it is complete."""
    enough = threading.Event()

    def ask() -> None:
        with (
            closing(Http(pipeline.ingress)) as ingress,
            closing(Http(pipeline.status)) as status,
        ):
            while not enough.is_set():
                made = ingress.post("/v1/tokens", {"pipeline": pipeline.name, "input": "orders"})
                assert isinstance(made, dict)
                status.ask("GET", f"/v1/tokens/{made['token']}?wait=1")

    threads = [threading.Thread(target=ask, name="asking") for _ in range(ASKING)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


R3 = Contest(
    key="R3",
    what=f"{RECORDS:,} records poured in, Kafka to Kafka",
    ours="Waybill: rows and fence in one transaction",
    theirs="PySpark with Waybill's settings, no tokens, no transaction",
    unit="/s",
    target=0.95,
    begin=ours_against_tuned,
)
R16 = Contest(
    key="R16",
    what=f"{RECORDS:,} records poured in",
    ours=f"while {ASKING} ask and wait for tokens of them",
    theirs="while nobody asks",
    unit="/s",
    target=0.97,
    begin=asked_against_unasked,
)
R24 = Contest(
    key="R24",
    what=f"{RECORDS:,} records poured in",
    ours=f"one of {BAD_EVERY} is no JSON, and goes to a dead-letter topic",
    theirs="all of them fit",
    unit="/s",
    target=0.8,
    begin=bad_against_clean,
)
