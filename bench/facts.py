"""What a pipeline that never ran would have left: its record, its facts, its tokens."""

import os
import uuid

from confluent_kafka import Producer

from bench.surroundings import PREFIX, Surroundings
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract import codec
from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.events import (
    Commit,
    Definition,
    Fact,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
    pipeline_key,
)
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.tokens import (
    Part,
    Token,
    pipeline_id,
    seal,
)
from waybill_shared.contract.vectors import Span
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_shared.process.clock import SystemClock

INPUT_PARTITIONS = 8
TOPIC_ID = "bM1xJ0yQRbm2a0Yw3oJm5w"


class Facts:
    """One pipeline of one stage; each commit takes one more record of every partition."""

    def __init__(self, around: Surroundings, producer: Producer | None = None) -> None:
        self.uid = str(uuid.uuid4())
        self.commits = 0
        self._around = around
        self._producer = producer or make_producer(around.kafka)

    def begin(self) -> None:
        publish(self._around, record(self.uid))
        self.define()
        self.flush()

    def define(self) -> None:
        self.produce(codec.encode(self._fact(definition(self.uid))))

    def commit(self, count: int = 1) -> None:
        """Returns when Kafka has them."""
        for message in self.encoded(count):
            self.produce(message)
        self.flush()

    def encoded(self, count: int) -> list[bytes]:
        """The next commits."""
        numbers = range(self.commits, self.commits + count)
        self.commits += count
        return [codec.encode(self._fact(commit(number))) for number in numbers]

    def produce(self, value: bytes) -> None:
        key = pipeline_key(DEFAULT_TENANT, self.uid)
        self._producer.produce(f"{PREFIX}.commits", key=key, value=value)
        self._producer.poll(0)

    def flush(self) -> None:
        self._producer.flush()

    def token(self, end: int) -> str:
        """For the records that commit `end - 1` takes, counted from 0."""
        spans = tuple(
            Span(topic_id=TOPIC_ID, partition=p, start=end - 1, end=end)
            for p in range(INPUT_PARTITIONS)
        )
        owner = pipeline_id(DEFAULT_TENANT, self.uid)
        part = Part(pipeline_id=owner, generation=1, spans=spans)
        made = Token(issued_at=SystemClock().now_ms(), request_id="00" * 8, parts=(part,))
        return seal(made, self._around.ring, tenant=DEFAULT_TENANT, nonce=os.urandom(12))

    def _fact(self, body: Definition | Commit) -> Fact:
        now = SystemClock().now_ms()
        uid = self.uid
        return Fact(tenant=DEFAULT_TENANT, pipeline_uid=uid, generation=1, at=now, body=body)


def stage_of(topic: str, topic_id: str) -> StageDefinition:
    bases = {(topic_id, partition): 0 for partition in range(INPUT_PARTITIONS)}
    source = InputDefinition(name="orders", topic=topic, topic_id=topic_id, root=True, bases=bases)
    sink = SinkDefinition(
        name="lake", kind="iceberg", target="raw.orders", topic_id=None, terminal=True, since=1
    )
    return StageDefinition(name="load", since=1, inputs=(source,), sinks=(sink,))


STAGE = stage_of("orders.in", TOPIC_ID)


def definition(uid: str) -> Definition:
    return Definition(name=uid, deleted=False, stages=(STAGE,))


MANIFEST = AppliedManifest(native="{}", source="version: 1\n")


def record(
    uid: str,
    *,
    name: str | None = None,
    manifest: AppliedManifest = MANIFEST,
    stage: StageDefinition = STAGE,
) -> PipelineRecord:
    return PipelineRecord(
        commanded_at=0,
        life=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        name=name or f"p-{uid}",
        generation=1,
        desired="running",
        manifest=manifest,
        stages=(stage,),
        created_at=1,
        updated_at=1,
    )


def commit(number: int) -> Commit:
    at = SystemClock().now_ms()
    return Commit(
        stage="load",
        sink="lake",
        since=1,
        epoch=1,
        batch=report_of(number, at=at),
        inputs=(),
        frontier={(TOPIC_ID, p): number + 1 for p in range(INPUT_PARTITIONS)},
        outputs=(),
    )


def report_of(number: int, *, at: int) -> BatchReport:
    return BatchReport(
        batch_id=number,
        sequence=number,
        lineage="7f1a",
        started_at=at,
        write_started_at=at,
        committed_at=at,
        rows=INPUT_PARTITIONS,
        version={"iceberg_snapshot_id": str(number)},
    )


def publish(around: Surroundings, found: PipelineRecord) -> None:
    key = pipeline_key(found.tenant, found.pipeline_uid)
    topic = f"{PREFIX}.pipelines"
    produce_and_wait(make_producer(around.kafka), topic, key, codec.encode(found))
