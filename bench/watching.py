"""R20, R20m and R9w: watches, from a sink's commit until their events can be read; and what many
open ones cost others."""

import statistics
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.contest import Contest, Turns
from bench.facts import Facts
from bench.surroundings import PREFIX, Surroundings
from bench.waking import (
    RoundTrip,
    running,
)
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract import codec
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.words import WatchState
from waybill_shared.kafka.clients import make_consumer, make_producer
from waybill_shared.process.clock import SystemClock

COMMITS = 30  # in each turn of R20
MANY = 10_000
OPEN = 100_000
FAR = 1_000_000  # commits away
TOGETHER = 500  # events in a transaction, as status has it
PARKED_S = 0.3  # until one that was written is surely asked for
TIMEOUT_S = 180.0
SPARE_FILES = 200
FETCH_WAIT_MS = 5  # readers that wait long are not woken by the end of a transaction
PARTITIONS = 8


class Watches:
    def __init__(self, around: Surroundings, status: str) -> None:
        self._producer = make_producer(around.kafka)
        self._status = status

    def begin(self, tokens: Sequence[str]) -> set[bytes]:
        """Their ids, when Kafka has them."""
        ids, now_ms = set(), SystemClock().now_ms()
        for token in tokens:
            watch = TokenWatch(
                id=uuid.uuid4().hex,
                tenant=DEFAULT_TENANT,
                actor="bench",
                token=token,
                at=now_ms,
                expires_at=now_ms + TOKEN_LIFE_MS,
                state=WatchState.OPEN,
                labels={},
            )
            self._producer.produce(f"{PREFIX}.watches", key=watch.id, value=codec.encode(watch))
            self._producer.poll(0)
            ids.add(watch.id.encode())
        self._producer.flush()
        return ids

    def await_open(self, count: int) -> None:
        """Until status knows them; that it asks for each takes about as long again."""
        began = time.monotonic()
        while self._open() < count:
            if time.monotonic() - began > TIMEOUT_S:
                raise TimeoutError(f"status does not know {count} watches")
            time.sleep(PARKED_S)
        time.sleep(PARKED_S + (time.monotonic() - began))

    def _open(self) -> float:
        with urllib.request.urlopen(f"{self._status}/metrics", timeout=TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(each.split()[-1]) for each in lines if each.startswith("waybill_watches "))


class Reader:
    """Of events, as a program of others has it: committed ones, from now on."""

    def __init__(self, around: Surroundings, topic: str, stack: ExitStack) -> None:
        options = {"isolation.level": "read_committed", "fetch.wait.max.ms": FETCH_WAIT_MS}
        self._consumer: Consumer = make_consumer(around.kafka, "bench-reader", **options)
        stack.callback(self._consumer.close)
        at = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        for each in at:
            each.offset = self._consumer.get_watermark_offsets(each, timeout=TIMEOUT_S)[1]
        self._consumer.assign(at)
        self.sizes: list[int] = []

    def read(self, keys: set[bytes]) -> None:
        """One event of each; others come between."""
        self.sizes.clear()
        while len(self.sizes) < len(keys):
            for each in self._consumer.consume(len(keys), timeout=0.01):
                if each.key() in keys:
                    self.sizes.append(len(each.value() or b""))


@contextmanager
def one_watch(around: Surroundings) -> Iterator[Turns]:
    with ExitStack() as stack:
        status = running(around, stack)
        facts, watches = Facts(around), Watches(around, status)
        facts.begin()
        reader = Reader(around, f"{PREFIX}.status", stack)
        round_trip = RoundTrip(around, stack)

        def told() -> float:
            ids = watches.begin([facts.token(facts.commits + 1)])
            time.sleep(PARKED_S)
            began = time.perf_counter()
            facts.commit()
            reader.read(ids)
            return time.perf_counter() - began

        yield Turns(
            ours=lambda: statistics.median(told() for _ in range(COMMITS)),
            theirs=lambda: statistics.median(round_trip() for _ in range(COMMITS)),
        )


@contextmanager
def many_watches(around: Surroundings) -> Iterator[Turns]:
    with ExitStack() as stack:
        status = running(around, stack)
        facts, watches = Facts(around), Watches(around, status)
        facts.begin()
        reader = Reader(around, f"{PREFIX}.status", stack)
        plain = Plain(around)
        sizes: list[int] = [700] * MANY

        def ours() -> float:
            ids = watches.begin([facts.token(facts.commits + 1) for _ in range(MANY)])
            watches.await_open(MANY)
            began = time.perf_counter()
            facts.commit()
            reader.read(ids)
            seconds = time.perf_counter() - began
            sizes[:] = reader.sizes
            return MANY / seconds

        def theirs() -> float:
            began = time.perf_counter()
            reader.read(plain.write(sizes))
            return MANY / (time.perf_counter() - began)

        yield Turns(ours=ours, theirs=theirs)


class Plain:
    """Writes as many bytes to the same topic, in one thread, with transactions as large."""

    def __init__(self, around: Surroundings) -> None:
        self._producer: Producer = make_producer(
            around.kafka, **{"transactional.id": f"bench-{uuid.uuid4().hex}"}
        )
        self._producer.init_transactions()

    def write(self, sizes: Sequence[int]) -> set[bytes]:
        """The keys."""
        keys = [uuid.uuid4().hex for _ in sizes]
        for begin in range(0, len(sizes), TOGETHER):
            self._producer.begin_transaction()
            for at in range(begin, min(begin + TOGETHER, len(sizes))):
                value = b"x" * sizes[at]
                self._producer.produce(f"{PREFIX}.status", key=keys[at], value=value)
                self._producer.poll(0)
            self._producer.commit_transaction()
        return {key.encode() for key in keys}


R20 = Contest(
    key="R20",
    what="from a sink's commit until the event of a watch can be read, p50",
    ours="commit event, tracker, Redis, status, a transaction, a reader of committed events",
    theirs="Kafka there and back (acks=all), and one publish of Redis",
    unit="s",
    target=5,
    begin=one_watch,
)
R20M = Contest(
    key="R20m",
    what=f"{MANY:,} watches of as many tokens told",
    ours="made final by one commit, until the last event is read",
    theirs="as many bytes by a plain transactional producer, until the last is read",
    unit="/s",
    target=0.3,
    begin=many_watches,
)
