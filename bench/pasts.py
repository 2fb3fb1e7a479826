"""R42: how long a page with 30 days of one of 1,000 pipelines takes, over a plain read of the same
bytes by the same client library.

The events of the pipeline are spread over its partition, among those of 124 others. None is in the
memory of status: it starts when all of them are older than what it keeps there.
"""

import json
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import TopicPartition

from bench.contest import Contest, Turns
from bench.facts import publish, record
from bench.surroundings import PREFIX, Surroundings, await_ready, service
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract import codec
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.kafka.clients import make_consumer, make_producer
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.clock import SystemClock

TOPIC = f"{PREFIX}.lifecycle"
PARTITIONS = 8
SHARE = 125  # pipelines of 1,000 that are in one partition
EVENTS = 160  # of each; together as many offsets as one page examines
DAY_MS = 86_400_000
OLDEST_DAYS, NEWEST_DAYS = 29, 2


@contextmanager
def read_back(around: Surroundings) -> Iterator[Turns]:
    uid = str(uuid.uuid4())
    partition = partition_of(pipeline_key(DEFAULT_TENANT, uid), PARTITIONS)
    publish(around, record(uid))
    live(around, partition, [uid, *(str(uuid.uuid4()) for _ in range(SHARE - 1))])
    with service("status", around) as status:
        await_ready(status)
        yield Turns(
            ours=lambda: read_page(f"{status}/v1/pipelines/p-{uid}/events?limit=1000"),
            theirs=lambda: read_raw(around, partition),
        )


def live(around: Surroundings, partition: int, uids: list[str]) -> None:
    """Write the events of all these pipelines, in turn."""
    producer, now_ms = make_producer(around.kafka), SystemClock().now_ms()
    step_ms = (OLDEST_DAYS - NEWEST_DAYS) * DAY_MS // EVENTS
    for number in range(EVENTS):
        at = now_ms - OLDEST_DAYS * DAY_MS + number * step_ms
        for uid in uids:
            value = codec.encode(replace(EVENT, pipeline_uid=uid, pipeline=f"p-{uid}", at=at))
            key = pipeline_key(DEFAULT_TENANT, uid)
            producer.produce(TOPIC, key=key, value=value, partition=partition, timestamp=at)
        producer.flush()


EVENT = LifecycleEvent(
    tenant=DEFAULT_TENANT,
    pipeline_uid="",
    pipeline="",
    generation=1,
    kind="transition",
    phase_from=Phase.STARTING,
    phase=Phase.RUNNING,
    reason="driver runs",
    error=None,
    actor="stage_runner",
    run=1,
    attempt=0,
    next_at=None,
    at=0,
)


def read_page(url: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        page = json.load(answer)
    spent = time.perf_counter() - began
    assert (len(page["items"]), page["next_cursor"]) == (EVENTS, None), "not all in one page"
    return spent


def read_raw(around: Surroundings, partition: int) -> float:
    began = time.perf_counter()
    left = SHARE * EVENTS
    consumer = make_consumer(around.kafka, uuid.uuid4().hex)
    # By number: to look for the beginning costs this client half a second.
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    while left > 0:
        left -= len(consumer.consume(500, 0.1))
    consumer.close()
    return time.perf_counter() - began


R42 = Contest(
    key="R42",
    what="a page with 30 days of one of 1,000 pipelines",
    ours="status, which reads 20,000 events of 125 pipelines again",
    theirs="a plain read of the same bytes",
    unit="s",
    target=3.0,
    begin=read_back,
)
