"""Decides what a batch must do, and in which sinks. Never does I/O, never reads the clock.

Each sink has a fence with two vectors (an offset for each partition). Below the frontier the sink
has everything; it never goes back. At the position its next batch begins. The two are the same,
unless a person has rewound the stage: a rewind alone moves the position back, and has a number.
The fence moves in the transaction that writes the rows. Only rows that are printed, or that
executors send to Kafka, are written before it, and may come twice. For each batch this happens:

1. Spark plans a batch and writes its start and end offsets into the checkpoint.
2. `batch_runs` makes a range of them for each partition. A new partition starts at its base.
3. `decide` compares these ranges with the fence of each sink of the stage. The last write of a sink
   may have been exactly these ranges: the driver failed after it, and Spark repeats the batch. Or
   each range starts at the position, and the sink lacks the batch. There are four answers:
   - `Write`: these sinks lack the batch. The rows are written there, and their fences move.
   - `RunOnly`: no sink lacks it, but the query keeps state, which the batch must change again.
   - `AlreadyDone`: no sink lacks it. Nothing runs; the fences are reported again.
   - `Diverged`: a range starts before or after a position. To write it would double or lose rows,
     so the stage stops. At its next start it continues at the positions (`resuming`).

Batch ids are never compared. A checkpoint that lost its last files returns with the same id and a
longer range, and skipping that by its id would lose rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from waybill_shared.contract.events import Fence, Range
from waybill_shared.contract.vectors import TopicPartition, Vector, join
from waybill_spark.tracking.checkpoint import TopicOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInput:
    """A topic that the stage reads, as this incarnation of it, and where the stage began in it.

    `retired` are the ids that topics of this name had before.
    """

    name: str
    topic: str
    topic_id: str
    bases: Mapping[int, int]
    retired: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The id of the topic, and those that topics of this name had before."""
        return frozenset((self.topic_id, *self.retired))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterSink:
    """A sink that was added after its stage had started: when, and where it must start at the
    latest.
    """

    since: int
    bases: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Decision: run the batch, and write it into `sinks`. The others have it already."""

    sinks: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnly:
    """Decision: run the batch for the state of its query, and write nothing: all sinks have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyDone:
    """Decision: run nothing, because all sinks have the batch, or because it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diverged:
    """Decision: stop, because the batch neither repeats nor follows what `sink` has."""

    sink: str
    detail: str


BatchDecision = Write | RunOnly | AlreadyDone | Diverged


def bases_of(inputs: tuple[StageInput, ...]) -> dict[TopicPartition, int]:
    return {(i.topic_id, p): offset for i in inputs for p, offset in i.bases.items()}


def batch_runs(
    inputs: tuple[StageInput, ...], starts: TopicOffsets, ends: TopicOffsets
) -> tuple[Range, ...]:
    """Return where the batch continues, and how far it goes, in each partition.

    A new partition starts at its base.
    """
    runs = (
        Range(
            topic=i.topic,
            topic_id=i.topic_id,
            partition=partition,
            start=starts.get(i.topic, {}).get(partition, i.bases.get(partition, 0)),
            end=end,
        )
        for i in inputs
        for partition, end in sorted(ends.get(i.topic, {}).items())
    )
    return tuple(sorted(runs, key=lambda run: (run.topic, run.partition)))  # in any plan's order


def drop_empty(runs: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return the runs that contain offsets."""
    return tuple(run for run in runs if run.start < run.end)


def decide(
    fences: Mapping[str, Fence | None],
    runs: tuple[Range, ...],
    bases: Vector,
    *,
    has_state: bool = False,
) -> BatchDecision:
    """Decide what a batch must do, by the fence of each sink of its stage.

    `bases` is where the stage started; a sink without a fence must be written from there.
    `has_state`: the query keeps state, so it must run each batch again that Spark repeats.
    """
    ranges = drop_empty(runs)
    lacking = []
    for sink, fence in fences.items():
        if fence is not None and ranges and fence.inputs == ranges:
            continue
        misfit = _misfit(fence, runs, bases)
        if misfit is not None:
            return Diverged(sink=sink, detail=misfit)
        lacking.append(sink)
    if ranges and lacking:
        return Write(sinks=frozenset(lacking))
    return RunOnly() if has_state else AlreadyDone()


def _misfit(fence: Fence | None, runs: tuple[Range, ...], bases: Vector) -> str | None:
    """Return where the batch does not start at the position; None if it follows there.

    An empty run is checked too, because the next batch of its partition starts at the same offset.
    """
    position = join(bases, fence.position) if fence is not None else bases
    for run in runs:
        expected = position.get((run.topic_id, run.partition), 0)
        if run.start != expected:
            return (
                f"{run.topic}[{run.partition}]: the batch takes {run.start} to {run.end},"
                f" the next one of the sink begins at {expected}"
            )
    return None
