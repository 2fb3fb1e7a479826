"""Writes what the token tracker and the stage runner would have written."""

import uuid
from dataclasses import dataclass

import redis

from builders import MANIFEST, applied, make_batch
from integration.conftest import Surroundings
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.events import (
    Definition,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
    pipeline_key,
)
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.slots import (
    Keys,
    Progress,
    SinkState,
    Slot,
    progress_to_json,
    slot_to_json,
)
from waybill_shared.contract.vectors import Vector
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_shared.process.clock import SystemClock

TOPIC_ID = "bM1xJ0yQRbm2a0Yw3oJm5w"
SINK = "load/lake@1"
SNAPSHOT = 6150272777574668285


def offsets(offset: int) -> Vector:
    return {(TOPIC_ID, 0): offset}


STAGES = (
    StageDefinition(
        name="load",
        since=1,
        inputs=(
            InputDefinition(
                name="orders", topic="orders.in", topic_id=TOPIC_ID, root=True, bases=offsets(10)
            ),
        ),
        sinks=(
            SinkDefinition(
                name="lake",
                kind="iceberg",
                target="raw.orders",
                topic_id=None,
                terminal=True,
                since=1,
            ),
        ),
    ),
)


def record_pipeline(surroundings: Surroundings, *, tag: str = "any") -> str:
    """The uid of a new pipeline with `STAGES`, in the topic of all pipelines."""
    uid = str(uuid.uuid4())
    record = PipelineRecord(
        commanded_at=0,
        life=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        name=f"orders-{uid[:8]}",
        generation=1,
        desired="running",
        manifest=applied(f"{MANIFEST}tags: [{tag}]\n"),
        stages=STAGES,
        created_at=1,
        updated_at=1,
    )
    producer = make_producer(surroundings.kafka)
    key = pipeline_key(DEFAULT_TENANT, uid)
    produce_and_wait(producer, f"{surroundings.prefix}.pipelines", key, encode(record))
    return uid


@dataclass
class Tracker:
    """Writes slots and histories as the token tracker does."""

    client: "redis.Redis"
    keys: Keys
    uid: str

    def write(
        self, slot: Slot, *, wake: bool = True, stamped: bool = True, at_ms: int | None = None
    ) -> None:
        """Without `wake` only who compares stamps sees it; not `stamped`, only who is woken."""
        place = self.keys.slot(DEFAULT_TENANT, self.uid)
        run_id = self.client.info("server")["run_id"]
        fields = {"slot": slot_to_json(slot), "run_id": run_id, "partition": "0", "position": "1"}
        for name, value in {**fields, **confirmed(at_ms or now_ms())}.items():
            self.client.hset(place, name, value)
        self.client.hincrby(place, "version", int(stamped))
        if wake:
            self.client.publish(self.keys.wake(), f"{DEFAULT_TENANT}/{self.uid}")

    def confirm(self) -> None:
        place = self.keys.slot(DEFAULT_TENANT, self.uid)
        for name, value in confirmed(now_ms()).items():
            self.client.hset(place, name, value)

    def commit(self, *batches: tuple[int, int], stamped: bool = True) -> None:
        """Batches as (id, reached); the history first, as nobody may see the slot without it."""
        place = self.keys.history(DEFAULT_TENANT, self.uid, SINK)
        for number, reached in batches:
            self.client.zadd(place, {progress_to_json(progress(number, reached)): number})
        number, reached = batches[-1]
        self.write(slot_of(self.uid, reached=reached, batch=number), stamped=stamped)


def confirmed(at_ms: int) -> dict[str, str]:
    """Tracker and Redis are on this machine, and have its clock."""
    return {"at": str(at_ms), "confirmed_at": str(at_ms)}


def progress(number: int, reached: int) -> Progress:
    return Progress(
        sink=SINK,
        reached=offsets(reached),
        batch=make_batch(
            number,
            committed_at=1_000_000 + number,
            rows=2,
            version={"iceberg_snapshot_id": str(SNAPSHOT + number)},
        ),
    )


def slot_of(uid: str, *, reached: int, batch: int = -1) -> Slot:
    state = SinkState(reached=offsets(reached), batch=make_batch(batch, committed_at=1, rows=2))
    return Slot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        generation=1,
        definition=Definition(name="orders", deleted=False, stages=STAGES),
        sinks={SINK: state},
        lifecycle=beat(uid),
        heard_at=now_ms(),
    )


def beat(uid: str) -> LifecycleEvent:
    return LifecycleEvent(
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        pipeline="orders",
        generation=1,
        kind="transition",
        phase_from="Starting",
        phase="Running",
        reason="",
        error=None,
        actor="stage_runner",
        run=1,
        attempt=0,
        next_at=None,
        at=now_ms(),
    )


def now_ms() -> int:
    return SystemClock().now_ms()
