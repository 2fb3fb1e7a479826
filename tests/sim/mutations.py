"""Guards taken out of the product, one at a time: each must be missed by the invariant it serves.

A mutation replaces what is a guard; it says which invariant must turn red, and by which faults.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

from shared.events import Fence, PartitionOffset, PipelineRecord, Range, StageDefinition
from shared.manifest import Manifest
from shared.slots import Slot
from shared.vectors import Vector
from sim.clients import Ingress
from sim.world import Rates
from stage_runner.core.planning import TopicState, define
from status.core.views import Reading, View, view_of
from waybill.spark.fencing import AlreadyDone, Diverged, Write, decide
from waybill.spark.ledger import Batch, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    name: str
    invariant: str
    instead: Mapping[str, Any]
    only: tuple[str, ...] = ()
    rates: Rates | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for target, replacement in self.instead.items():
                stack.enter_context(patch(target, replacement))
            yield

    def __str__(self) -> str:
        return f"{self.invariant}-{self.name.replace(' ', '-')}"


def _always_write(
    fence: Fence | None, ranges: tuple[Range, ...], bases: Vector
) -> Write | AlreadyDone | Diverged:
    return Write()


def _never_diverged(
    fence: Fence | None, ranges: tuple[Range, ...], bases: Vector
) -> Write | AlreadyDone | Diverged:
    found = decide(fence, ranges, bases)
    return Write() if isinstance(found, Diverged) else found


def _by_batch_id(stage: object, ledger: Ledger, batch: Batch) -> bool:
    return ledger.fence is None or batch.batch_id > ledger.fence.batch_id


def _nothing(*args: object, **kwargs: object) -> None:
    return None


def _true(*args: object) -> bool:
    return True


def _false(*args: object) -> bool:
    return False


def _none_found(*args: object) -> tuple[()]:
    return ()


def _no_stops(*args: object) -> list[Exception]:
    return []


def _from_the_beginning(*args: object) -> int:
    return 0


def _the_later(
    left: tuple[PartitionOffset, ...], right: tuple[PartitionOffset, ...]
) -> tuple[PartitionOffset, ...]:
    return right


def _any_server(reading: Reading | None) -> Slot | None:
    return None if reading is None else reading.slot


def _every_generation(reading: Reading | None) -> View:
    return replace(view_of(reading), generation=2**31)


def _since_ever(
    manifest: Manifest, topics: Mapping[str, TopicState], before: PipelineRecord | None
) -> tuple[StageDefinition, ...]:
    return tuple(
        replace(stage, sinks=tuple(replace(sink, since=1) for sink in stage.sinks))
        for stage in define(manifest, topics, before)
    )


async def _stable_ends(ingress: Ingress, topic: str, partitions: list[int]) -> dict[int, int]:
    found = ingress._world.cluster.topics[topic].partitions
    return {number: found[number].stable_end() for number in partitions}


def _unbound(head: bytes, tenant: str) -> bytes:
    return head


MUTATIONS: Final = (
    Mutation(
        name="a sink is reported before its readers see it",
        invariant="I1",
        instead={"sim.sinks.KafkaSink.await_visible": _true},
        only=("strangers",),
    ),
    Mutation(
        name="what nobody was told of when its topic went is told later",
        invariant="I1",
        instead={"waybill.spark.stage.TrackedStage._give_up": _no_stops},
        only=("topics", "strangers"),
        rates=Rates(crash=0.08),
    ),
    Mutation(
        name="batches are skipped by their ids",
        invariant="I1",
        instead={"waybill.spark.stage.TrackedStage._must_write": _by_batch_id},
        only=("checkpoint",),
    ),
    Mutation(
        name="what can never be read is not set aside",
        invariant="I2",
        instead={"waybill.spark.stage.losses": _none_found},
        only=("retention",),
    ),
    Mutation(
        name="torn sinks are not levelled",
        invariant="I2",
        instead={"waybill.spark.stage.TrackedStage._level": _nothing},
        only=("driver", "checkpoint"),
        rates=Rates(crash=0.02, pause=0.02, takeover=0.5, unsure=0.1),
    ),
    Mutation(
        name="a lost slot is written before all facts are applied again",
        invariant="I3",
        instead={"sim.tracker.TrackerProcess.end": _from_the_beginning},
        only=("power",),
    ),
    Mutation(
        name="an older tracker may write over a newer one",
        invariant="I3",
        instead={"sim.redis_server.is_newer": _false},
        only=("tracker",),
    ),
    Mutation(
        name="old tokens wait for sinks that came later",
        invariant="I3",
        instead={"stage_runner.app.define": _since_ever},
        only=("manifest",),
    ),
    Mutation(
        name="a runner that lost its partition is not shut out",
        invariant="I13",
        instead={"sim.runner.RunnerProcess._shut_out": _false},
        only=("cutoff", "lives"),
    ),
    Mutation(
        name="a deleted pipeline does not report its last batches",
        invariant="I4",
        instead={"sim.driver.report_last": _nothing},
        only=("lives",),
        rates=Rates(facts=0.3),
    ),
    Mutation(
        name="every batch is written",
        invariant="I5",
        instead={"waybill.spark.ledger.decide": _always_write},
        only=("driver",),
    ),
    Mutation(
        name="a claim shuts nobody out",
        invariant="I5",
        instead={"sim.sinks.KafkaSink._check_owner": _nothing},
        only=("driver",),
        rates=Rates(pause=0.05, takeover=0.7),
    ),
    Mutation(
        name="a table takes commits from whoever comes",
        invariant="I5",
        instead={"sim.sinks.TableSink._check_fence": _nothing},
        only=("driver",),
        rates=Rates(pause=0.05, takeover=0.7),
    ),
    Mutation(
        name="births count up to the stable end",
        invariant="I6",
        instead={"sim.clients.Ingress.ends": _stable_ends},
        only=("strangers",),
    ),
    Mutation(
        name="topic ids are not compared",
        invariant="I7",
        instead={"waybill.spark.stage.TrackedStage._settle": _no_stops},
        only=("topics",),
    ),
    Mutation(
        name="a checkpoint is believed whatever the sinks hold",
        invariant="I8",
        instead={
            "waybill.spark.ledger.decide": _never_diverged,
            "waybill.spark.resuming._fits": _true,
        },
        only=("checkpoint",),
    ),
    Mutation(
        name="a hop counts before its reader is past it",
        invariant="I9",
        instead={"token_tracker.core.graph.covers": _true},
    ),
    Mutation(
        name="the seal does not bind the tenant",
        invariant="I10",
        instead={"shared.tokens._bound": _unbound},
    ),
    Mutation(
        name="the last commit wins",
        invariant="I11",
        instead={"token_tracker.core.facts.join_offsets": _the_later},
    ),
    Mutation(
        name="a slot of another server counts",
        invariant="I12",
        instead={"status.core.views.usable_slot": _any_server},
        only=("redis",),
    ),
    Mutation(
        name="the age of a slot does not count",
        invariant="I12",
        instead={"status.core.views.NON_FINAL_AGE_MS_MAX": 2**62},
        only=("tracker",),
    ),
    Mutation(
        name="a slot that is behind a token's generation counts",
        invariant="I12",
        instead={"status.app.tokens.view_of": _every_generation},
        only=("manifest",),
    ),
)
