"""How long starts take after a long life, and what a pipeline costs our own topics. By hand:

`python -m bench.ages fences|takeover|sizes`

- fences: 2,000,000 fences of one key that nobody compacted; the newest, and a key that has none.
- takeover: a week of snapshots of 1,000 pipelines, compacted by the broker, and the longest tail,
  until all tokens are answered; the start of the process is within that time.
- sizes: what a pipeline that runs writes into each of our topics, per batch and in an idle day;
  that takes 35 minutes.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer, TopicPartition

from bench.facts import (
    INPUT_PARTITIONS,
    TOPIC_ID,
    Facts,
    definition,
    record,
    report_of,
)
from bench.pipelines import Waybill, order, waybill
from bench.rebuild import await_complete, timed
from bench.surroundings import PREFIX, Surroundings, await_ready, service, surroundings
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract import codec
from waybill_shared.contract.events import (
    Fence,
    Range,
    Snapshot,
    pipeline_key,
)
from waybill_shared.contract.slots import (
    SLOT_VERSION,
    Progress,
    SinkState,
    Slot,
    entry_of,
)
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer, make_producer, produce_and_wait
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.kafka.partitioner import partition_of
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_token_tracker.adapters.journal import STAMPED, stamp
from waybill_token_tracker.core.snapshots import HISTORY_MAX, TAIL_MAX, pack

FENCES = 2_000_000
PIPELINES = 1_000
SNAPSHOTS = 7 * 24 * 6  # of each: one in ten minutes, for a week
PARTITIONS = 8
ASKED_AT_ONCE = 100
BATCHES = 50
BATCH_S = 1.0
SETTLED_S = 900.0  # by then an idle driver says its last commit every ten minutes
IDLE_S = 1_200.0
CLEANER_S = 40.0  # the broker looks every 15 s for what may be compacted
CLEANED_TIMEOUT_S = 600.0
ENDS = {(TOPIC_ID, number): 10**9 + number * 7919 for number in range(INPUT_PARTITIONS)}


def fences(around: Surroundings) -> None:
    topic, admin = f"{PREFIX}.fences", make_admin(around.kafka)
    key, value = "default/uid/stage/sink", codec.encode(a_fence())
    producer = bulk(around)
    for _ in range(FENCES):
        put(producer, topic, key, value)
    producer.flush()
    partition = partition_of(key, PARTITIONS)
    none = next(k for k in map(str, range(99)) if partition_of(k, PARTITIONS) == partition)
    for what, asked in (("the newest", key), ("a key that has none", none)):
        took = timed(lambda asked=asked: Fences(admin, PREFIX).newest(asked))  # type: ignore[misc]
        print(f"{FENCES:,} fences of {len(value)} B, {what}: {took:.2f} s")


def takeover(around: Surroundings) -> None:
    producer = bulk(around)
    pipelines = [Facts(around, producer) for _ in range(PIPELINES)]
    for pipeline in pipelines:
        put(
            producer,
            f"{PREFIX}.pipelines",
            key_of(pipeline.uid),
            codec.encode(record(pipeline.uid)),
        )
        pipeline.define()
    producer.flush()
    began = ends(around)
    size = write_snapshots(around, producer, [pipeline.uid for pipeline in pipelines])
    while min(tails := [ends(around)[p] - began[p] for p in began]) < TAIL_MAX:
        for pipeline in pipelines:
            for value in pipeline.encoded(2):
                pipeline.produce(value)
        producer.flush()
    commit_offsets(around, began)
    tokens = [pipeline.token(pipeline.commits) for pipeline in pipelines]
    await_compaction(around)
    stored = on_disk(around)["frontiers"]
    with service("status", around) as status:
        await_ready(status)
        started = time.perf_counter()
        with service("token_tracker", around):
            for at in range(0, PIPELINES, ASKED_AT_ONCE):
                await_complete(status, tokens[at : at + ASKED_AT_ONCE])
            took = time.perf_counter() - started
    print(
        f"{PIPELINES:,} pipelines, {SNAPSHOTS * PIPELINES:,} snapshots of {size:,} B,"
        f" {stored / 1e6:,.0f} MB on disk, a tail of {sum(tails):,} commits: {took:.1f} s"
    )


def sizes(around: Surroundings) -> None:
    with waybill(around) as running:
        send(around, running)  # what comes once: class loading, the first fence
        before = on_disk(around)
        for _ in range(BATCHES):
            send(around, running)
        batches = on_disk(around)
        time.sleep(SETTLED_S)
        settled = on_disk(around)
        time.sleep(IDLE_S)
        idle = on_disk(around)
    for topic, size in idle.items():
        per_batch = (batches[topic] - before[topic]) / BATCHES
        per_day = (size - settled[topic]) / IDLE_S * 86_400
        print(f"{topic:10} {per_batch:8,.0f} B per batch {per_day:12,.0f} B per idle day")


def send(around: Surroundings, running: Waybill) -> None:
    """One record, which is one batch."""
    produce_and_wait(make_producer(around.kafka), running.way.source, "k", order(1))
    time.sleep(BATCH_S)


def on_disk(around: Surroundings) -> dict[str, int]:
    data = around.folder / "bare" / "kafka" / "data"
    return {
        spec.name: sum(f.stat().st_size for f in data.glob(f"{PREFIX}.{spec.name}-*/*.log"))
        for spec in topic_specs()
    }


def await_compaction(around: Surroundings) -> None:
    """Until the broker has found nothing to compact for longer than it waits between two looks."""
    deadline = time.monotonic() + CLEANED_TIMEOUT_S
    before, after = -1, on_disk(around)["frontiers"]
    while before != after:
        if time.monotonic() > deadline:
            raise TimeoutError(f"still compacting after {CLEANED_TIMEOUT_S:.0f} s: {after:,} B")
        time.sleep(CLEANER_S)
        before, after = after, on_disk(around)["frontiers"]


def write_snapshots(around: Surroundings, producer: Producer, uids: list[str]) -> int:
    """All of a pipeline the same; bytes of one."""
    topic_id = (
        make_admin(around.kafka).identify([f"{PREFIX}.commits"])[f"{PREFIX}.commits"].topic_id
    )
    values = {uid: codec.encode(a_snapshot(uid, topic_id)) for uid in uids}
    for _ in range(SNAPSHOTS):
        for uid, value in values.items():
            put(producer, f"{PREFIX}.frontiers", key_of(uid), value)
    producer.flush()
    return len(values[uids[0]])


def commit_offsets(around: Surroundings, offsets: dict[int, int]) -> None:
    """As a tracker would have left them."""
    topic = f"{PREFIX}.commits"
    topics = OwnTopics(make_admin(around.kafka), [f"{PREFIX}.{name}" for name in STAMPED])
    mark = stamp(topics, topic, f"{PREFIX}.frontiers")
    consumer = make_consumer(around.kafka, f"{PREFIX}.token_tracker")
    places = [TopicPartition(topic, p, offset, mark) for p, offset in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def ends(around: Surroundings) -> dict[int, int]:
    return make_admin(around.kafka).ends(f"{PREFIX}.commits", range(PARTITIONS))


def bulk(around: Surroundings) -> Producer:
    options = {"linger.ms": 20, "batch.size": 500_000, "queue.buffering.max.messages": 500_000}
    return make_producer(around.kafka, **options)


def put(producer: Producer, topic: str, key: str, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, key=key, value=value)
            return
        except BufferError:
            producer.poll(0.1)


def key_of(uid: str) -> str:
    return pipeline_key(DEFAULT_TENANT, uid)


def a_fence() -> Fence:
    ranges = tuple(
        Range(topic="orders.in", topic_id=TOPIC_ID, partition=partition, start=0, end=end)
        for (_, partition), end in ENDS.items()
    )
    return Fence(
        tenant=DEFAULT_TENANT,
        pipeline_uid="uid",
        stage="stage",
        sink="sink",
        generation=1,
        epoch=1,
        batch=report_of(1, at=1),
        inputs=ranges,
        frontier=ENDS,
        outputs=(),
    )


def a_snapshot(uid: str, topic_id: str) -> Snapshot:
    """Of one stage and sink, with all the history that it may have."""
    state = SinkState()
    slot = Slot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        generation=1,
        definition=definition(uid),
        sinks={"load/lake@1": state},
    )
    history = [entry_of(a_step(number)) for number in range(HISTORY_MAX)]
    return Snapshot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        topic_id=topic_id,
        partition=partition_of(key_of(uid), PARTITIONS),
        position=1,
        slot_version=SLOT_VERSION,
        slot=pack(slot, history),
        at=1,
    )


def a_step(number: int) -> Progress:
    return Progress(
        sink="load/lake@1",
        before=ENDS,
        reached=ENDS,
        batch=replace(
            report_of(number, at=1_795_251_600_000 + number * 9973),
            version={"iceberg_snapshot_id": str(6150272777574668285 + number * 10**12)},
        ),
    )


RUNS = {"fences": fences, "takeover": takeover, "sizes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("runs", nargs="+", choices=RUNS)
    for name in parser.parse_args().runs:
        with (
            tempfile.TemporaryDirectory(prefix="waybill-ages-") as folder,
            surroundings(Path(folder)) as around,
        ):
            RUNS[name](around)


if __name__ == "__main__":
    main()
