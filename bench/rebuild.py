"""R15: how long after Redis was wiped every token is answered right again, over a raw read of the
commits topic by the same client library.

Three ways back:
- wiped: the tracker runs and holds every slot, as when Redis alone fails. This is R15. Most of it
  is the time until the tracker looks again, whatever the size of the topic.
- wiped, tracker restarted: it begins from its snapshots; the time holds the start of the process.
- nothing but the facts: no snapshot and no offset either; it applies every commit again.
"""

import json
import random
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bench.contest import Contest, Turns
from bench.facts import Facts
from bench.surroundings import PREFIX, Surroundings, await_ready, service
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.topics import create_topics

COMMITS = 20_000
PIPELINES = 16
TIMEOUT_S = 300.0
POLL_S = 0.005
CONFIRM_INTERVAL_S = 1.0  # of the tracker: a wipe comes at any moment of it
SEED = 15
OPEN = frozenset({"unknown", "in_progress"})


@contextmanager
def rebuilt(around: Surroundings) -> Iterator[Turns]:
    tokens = [filled(around) for _ in range(PIPELINES)]
    dice = random.Random(SEED)
    with service("status", around) as status:
        await_ready(status)

        def answered() -> None:
            await_complete(status, tokens)

        def wiped() -> float:
            with service("token_tracker", around) as url:
                await_ready(url)
                await_complete(status, tokens, before=OPEN)
                time.sleep(dice.uniform(0, CONFIRM_INTERVAL_S))
                return timed(lambda: wipe(around), answered)

        def from_facts() -> float:
            forget(around)
            return restarted(around, answered)

        yield Turns(
            ours=wiped,
            theirs=lambda: timed(lambda: read_raw(around)),
            also={
                "wiped, tracker restarted": lambda: restarted(around, answered),
                "nothing but the facts": from_facts,
            },
        )


def filled(around: Surroundings) -> str:
    """A pipeline with its share of the commits; a token for the last."""
    facts = Facts(around)
    facts.begin()
    facts.commit(COMMITS // PIPELINES)
    return facts.token(facts.commits)


def timed(*steps: Callable[[], object]) -> float:
    began = time.perf_counter()
    for step in steps:
        step()
    return time.perf_counter() - began


def restarted(around: Surroundings, answered: Callable[[], None]) -> float:
    wipe(around)
    began = time.perf_counter()
    with service("token_tracker", around):
        answered()
        return time.perf_counter() - began


def wipe(around: Surroundings) -> None:
    with redis.Redis.from_url(around.redis) as client:
        client.flushall()


def forget(around: Surroundings) -> None:
    """No snapshots, and no offset that says from where to read."""
    client = make_admin(around.kafka).client
    group = client.delete_consumer_groups([f"{PREFIX}.token_tracker"])
    topic = client.delete_topics([f"{PREFIX}.frontiers"], operation_timeout=30)
    for future in (*group.values(), *topic.values()):
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
    create_topics(around.kafka, PREFIX)


def read_raw(around: Surroundings) -> None:
    topic = f"{PREFIX}.commits"
    admin = make_admin(around.kafka)
    ends = admin.ends(topic, admin.identify([topic])[topic].partitions)
    left = sum(ends.values())
    consumer = make_consumer(around.kafka, uuid.uuid4().hex)
    # By number: to look for the beginning costs this client half a second.
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    while left > 0:
        left -= len(consumer.consume(500, 0.1))
    consumer.close()


def await_complete(
    status: str, tokens: list[str], *, before: frozenset[str] = frozenset({"unknown"})
) -> None:
    """`before` is what may be answered until then; of complete tokens that is `unknown` only."""
    body = json.dumps({"tokens": tokens}).encode()
    request = urllib.request.Request(f"{status}/v1/tokens/query", data=body, method="POST")
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(request, timeout=30) as answer:
            outcomes = [each["outcome"] for each in json.load(answer)["outcomes"]]
        assert set(outcomes) <= {"complete", *before}, outcomes
        if set(outcomes) == {"complete"}:
            return
        time.sleep(POLL_S)
    raise TimeoutError(f"not all tokens are complete after {TIMEOUT_S} s")


R15 = Contest(
    key="R15",
    what=f"all tokens answered again, {COMMITS:,} commits of {PIPELINES} pipelines",
    ours="Redis wiped, tracker runs",
    theirs="raw read of the commits topic",
    unit="s",
    target=2,
    begin=rebuilt,
)
