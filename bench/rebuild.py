"""R15: how long after Redis was wiped every token is answered right again, over a raw read of the
commits topic by the same client library. `python -m bench.rebuild`

Three ways back, interleaved with the raw read:
- wiped: the tracker runs and holds every slot, as when Redis alone fails. This is R15. Most of it
  is the time until the tracker looks again, whatever the size of the topic.
- wiped, tracker restarted: it begins from its snapshots; the time holds the start of the process.
- nothing but the facts: no snapshot and no offset either; it applies every commit again.
"""

import argparse
import json
import os
import random
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import redis
from confluent_kafka import TopicPartition

from bench.surroundings import PREFIX, Surroundings, await_ready, print_table, service, surroundings
from shared import codec
from shared.clock import SystemClock
from shared.events import (
    Commit,
    Definition,
    Fact,
    InputDefinition,
    Message,
    PartitionOffset,
    PipelineRecord,
    SinkDefinition,
    SinkResult,
    StageDefinition,
    pipeline_key,
)
from shared.kafka import make_admin, make_consumer, make_producer
from shared.settings import DEFAULT_TENANT
from shared.tokens import Part, Token, input_id, seal
from shared.topics import create_topics
from shared.vectors import Span

INPUT_PARTITIONS = 8
TOPIC_ID = "bM1xJ0yQRbm2a0Yw3oJm5w"
TIMEOUT_S = 300.0
POLL_S = 0.005
CONFIRM_INTERVAL_S = 1.0  # of the tracker: a wipe comes at any moment of it
SEED = 15
OPEN = frozenset({"unknown", "in_progress"})
RAW, WIPED, RESTARTED, FACTS = (
    "raw read of the topic",
    "wiped (R15)",
    "wiped, tracker restarted",
    "nothing but the facts",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--pipelines", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="waybill-bench-") as folder,
        surroundings(Path(folder)) as around,
    ):
        tokens = fill(around, chosen.pipelines, chosen.commits // chosen.pipelines)
        times = measure(around, tokens, chosen.rounds)
    print(
        f"{chosen.commits} commits of {INPUT_PARTITIONS} partitions, {chosen.pipelines} pipelines,"
        f" {os.cpu_count()} cores"
    )
    print_table(times, peer=RAW)


def measure(around: Surroundings, tokens: list[str], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in (RAW, WIPED, RESTARTED, FACTS)}
    dice = random.Random(SEED)
    with service("status", around) as status:
        await_ready(status)

        def answered() -> None:
            await_complete(status, tokens)

        for _ in range(rounds):
            with service("token_tracker", around) as url:
                await_ready(url)
                await_complete(status, tokens, before=OPEN)
                times[RAW].append(timed(lambda: read_raw(around)))
                time.sleep(dice.uniform(0, CONFIRM_INTERVAL_S))
                times[WIPED].append(timed(lambda: wipe(around), answered))
            times[RESTARTED].append(restarted(around, answered))
            forget(around)
            times[FACTS].append(restarted(around, answered))
    return times


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
        future.result()
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


def fill(around: Surroundings, pipelines: int, commits: int) -> list[str]:
    """Facts of so many pipelines; a token for the last record of each."""
    producer = make_producer(around.kafka, **{"linger.ms": 20})
    tokens: list[str] = []
    for _ in range(pipelines):
        uid = str(uuid.uuid4())
        key = pipeline_key(DEFAULT_TENANT, uid)

        def send(topic: str, message: Message, key: str = key) -> None:
            producer.produce(f"{PREFIX}.{topic}", key=key, value=codec.encode(message))
            producer.poll(0)

        send("pipelines", record(uid))
        send("commits", fact(uid, Definition(name=uid, deleted=False, stages=(STAGE,))))
        for number in range(commits):
            send("commits", fact(uid, commit(number)))
        producer.flush()
        tokens.append(token(around, uid, commits))
    return tokens


STAGE = StageDefinition(
    name="load",
    inputs=(
        InputDefinition(
            name="orders",
            topic="orders.in",
            topic_id=TOPIC_ID,
            root=True,
            bases=tuple(
                PartitionOffset(topic_id=TOPIC_ID, partition=p, offset=0)
                for p in range(INPUT_PARTITIONS)
            ),
        ),
    ),
    sinks=(
        SinkDefinition(
            name="lake", kind="iceberg", target="raw.orders", topic_id=None, terminal=True, since=1
        ),
    ),
)


def record(uid: str) -> PipelineRecord:
    return PipelineRecord(
        commanded_at=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        name=f"p-{uid}",
        generation=1,
        desired="running",
        manifest="version: 1\n",
        stages=(STAGE,),
        created_at=1,
        updated_at=1,
    )


def fact(uid: str, body: Definition | Commit) -> Fact:
    now = SystemClock().now_ms()
    return Fact(tenant=DEFAULT_TENANT, pipeline_uid=uid, generation=1, at=now, body=body)


def commit(number: int) -> Commit:
    at = SystemClock().now_ms()
    return Commit(
        stage="load",
        sequence=number,
        lineage="7f1a",
        epoch=1,
        batch_id=number,
        started_at=at,
        committed_at=at,
        inputs=(),
        frontier=tuple(
            PartitionOffset(topic_id=TOPIC_ID, partition=p, offset=number + 1)
            for p in range(INPUT_PARTITIONS)
        ),
        outputs=(),
        sinks=(
            SinkResult(
                name="lake",
                kind="iceberg",
                outcome="committed",
                batch_rows=INPUT_PARTITIONS,
                version={"iceberg_snapshot_id": number},
                started_at=at,
                ended_at=at,
            ),
        ),
    )


def token(around: Surroundings, uid: str, end: int) -> str:
    spans = tuple(
        Span(topic_id=TOPIC_ID, partition=p, start=end - 1, end=end)
        for p in range(INPUT_PARTITIONS)
    )
    owner = input_id(DEFAULT_TENANT, uid, "orders")
    part = Part(input_id=owner, generation=1, spans=spans)
    made = Token(issued_at=SystemClock().now_ms(), request_id="00" * 8, parts=(part,))
    return seal(made, around.ring, tenant=DEFAULT_TENANT, nonce=os.urandom(12))


if __name__ == "__main__":
    main()
