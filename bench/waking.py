"""R7 and R9: from a sink's commit to the bytes that whoever waits reads, for one and for many."""

import asyncio
import resource
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import redis
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from bench.contest import Contest, Turns
from bench.facts import Facts
from bench.http import Http
from bench.load import place_of, request
from bench.peers import echo
from bench.surroundings import Surroundings, await_ready, peer, service
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer, make_producer, produce_and_wait
from waybill_shared.kafka.topics import create_missing

COMMITS = 50  # in each turn of R7
TAIL_COMMITS = 300  # for the one in a hundred that takes longest
WAITERS = 10_000
PARKED_S = 0.05  # until a request that was sent is surely held
BYTES_MAX = 65_536
TIMEOUT_S = 120.0
FINAL = b'"complete"'
SPARE_FILES = 200


def running(around: Surroundings, stack: ExitStack) -> str:
    """Status and a tracker; the first one's URL."""
    status, tracker = (
        stack.enter_context(service(name, around)) for name in ("status", "token_tracker")
    )
    await_ready(status)
    await_ready(tracker)
    return status


@contextmanager
def one_waiter(around: Surroundings) -> Iterator[Turns]:
    with ExitStack() as stack:
        status = running(around, stack)
        facts = Facts(around)
        facts.begin()
        round_trip = RoundTrip(around, stack)
        yield Turns(
            ours=lambda: statistics.median(woken(status, facts) for _ in range(COMMITS)),
            theirs=lambda: statistics.median(round_trip() for _ in range(COMMITS)),
            also={"ours, p99": lambda: p99([woken(status, facts) for _ in range(TAIL_COMMITS)])},
        )


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[-1]


def woken(status: str, facts: Facts) -> float:
    """Seconds from the commit event's produce to the answer of a request that was held."""
    token = facts.token(facts.commits + 1)
    with socket.create_connection(place_of(status), timeout=TIMEOUT_S) as waiter:
        waiter.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiter.sendall(request("GET", f"/v1/tokens/{token}?wait=30", b"", "text/plain"))
        time.sleep(PARKED_S)
        began = time.perf_counter()
        facts.commit()
        answer = b""
        while FINAL not in answer:
            answer += waiter.recv(BYTES_MAX)
        return time.perf_counter() - began


class RoundTrip:
    """What a commit must at least go through: Kafka once, Redis' publish once."""

    def __init__(self, around: Surroundings, stack: ExitStack) -> None:
        self._topic = "bench.roundtrip"
        create_missing(make_admin(around.kafka), [NewTopic(self._topic, 1, 1)])
        self._producer = make_producer(around.kafka)
        self._consumer: Consumer = make_consumer(around.kafka, "roundtrip")
        stack.callback(self._consumer.close)
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])
        self._redis = stack.enter_context(redis.Redis.from_url(around.redis))
        self._heard = stack.enter_context(self._redis.pubsub(ignore_subscribe_messages=True))
        self._heard.subscribe("roundtrip")
        self._heard.get_message(timeout=TIMEOUT_S)

    def __call__(self) -> float:
        began = time.perf_counter()
        produce_and_wait(self._producer, self._topic, "", b"x")
        while self._consumer.poll(TIMEOUT_S) is None:
            pass
        self._redis.publish("roundtrip", b"x")
        while self._heard.get_message(timeout=TIMEOUT_S) is None:
            pass
        return time.perf_counter() - began


@contextmanager
def many_waiters(around: Surroundings) -> Iterator[Turns]:
    allow_files(WAITERS + SPARE_FILES)
    with ExitStack() as stack:
        status = running(around, stack)
        bare = stack.enter_context(peer(echo, around))
        await_ready(bare)
        facts = Facts(around)
        facts.begin()
        fire = stack.enter_context(closing(Http(bare)))

        def ours() -> float:
            token = facts.token(facts.commits + 1)
            return WAITERS / all_woken(status, f"/v1/tokens/{token}", facts.commit)

        def theirs() -> float:
            return WAITERS / all_woken(bare, "/events", lambda: fire.post("/fire", {}))

        yield Turns(ours=ours, theirs=theirs)


def allow_files(count: int) -> None:
    """Each waiter is a socket; the services inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        raise OSError(f"R9 needs {count} open files, this machine allows {hard}: see `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def all_woken(url: str, path: str, wake: Callable[[], object]) -> float:
    """Seconds from `wake` until every one of the event streams has told the last event."""
    return asyncio.run(_all_woken(url, path, wake))


async def _all_woken(url: str, path: str, wake: Callable[[], object]) -> float:
    host, port = place_of(url)
    sent = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    crowd = Crowd(WAITERS, loop)
    for _ in range(WAITERS):
        transport, _ = await loop.create_connection(lambda: Waiter(crowd), host, port)
        transport.write(sent)
    async with asyncio.timeout(TIMEOUT_S):
        await crowd.all_held
        began = time.perf_counter()
        await asyncio.to_thread(wake)
        await crowd.all_woken
    seconds = time.perf_counter() - began
    crowd.close()
    return seconds


class Crowd:
    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self.held = self.woken = size
        self.all_held: asyncio.Future[None] = loop.create_future()
        self.all_woken: asyncio.Future[None] = loop.create_future()
        self.transports: list[asyncio.BaseTransport] = []

    def close(self) -> None:
        for transport in self.transports:
            transport.close()


class Waiter(asyncio.Protocol):
    """Counts itself as held with the first event, as woken with the final one."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._held = self._woken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._crowd.transports.append(transport)

    def data_received(self, data: bytes) -> None:
        if not self._held and b"in_progress" in data:
            self._held = True
            self._crowd.held -= 1
            if not self._crowd.held:
                self._crowd.all_held.set_result(None)
        if not self._woken and FINAL in data:
            self._woken = True
            self._crowd.woken -= 1
            if not self._crowd.woken:
                self._crowd.all_woken.set_result(None)


R7 = Contest(
    key="R7",
    what="from a sink's commit to the bytes that one waiter reads, p50",
    ours="commit event, tracker, Redis, status, HTTP",
    theirs="Kafka there and back (acks=all), and one publish of Redis",
    unit="s",
    target=3,
    begin=one_waiter,
)
R9 = Contest(
    key="R9",
    what=f"{WAITERS:,} event streams woken",
    ours="by a commit that completes their token",
    theirs="by an event in a bare Starlette server",
    unit="/s",
    target=0.8,
    begin=many_waiters,
)
