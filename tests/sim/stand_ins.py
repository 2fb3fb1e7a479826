"""What stands where a guard of the product was, when `mutations` takes it out."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from unittest.mock import patch

import pyarrow as pa

from sim.clients import Ingress
from sim.tracker import Topics
from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import (
    Commit,
    Definition,
    Fence,
    PipelineRecord,
    Snapshot,
    StageDefinition,
    snapshot_key,
)
from waybill_shared.contract.former_names import Named
from waybill_shared.contract.lifecycle import MOVES, Happening, MoveAction, Phase
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.sealing import Bound
from waybill_shared.contract.slots import Hop, Slot
from waybill_shared.contract.vectors import Span, Vector
from waybill_shared.contract.words import OutcomeKind, WatchEnd
from waybill_spark.driver.ending import Ending
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.batch_writer import BatchWriter
from waybill_spark.tracking.dead_letters.triage import Judged
from waybill_spark.tracking.fencing import AlreadyDone, Write, decide
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.next_fence import next_fence
from waybill_spark.tracking.pieces import Ranges
from waybill_spark.tracking.sink import Written
from waybill_spark.tracking.stage import TrackedStage
from waybill_spark.tracking.stopping import StageStopped
from waybill_stage_runner.core.pipelines import scheduling
from waybill_stage_runner.core.pipelines.events import DriverPaused
from waybill_stage_runner.core.pipelines.moves import Decision, _start_driver, move
from waybill_stage_runner.core.pipelines.planning import TopicState, define
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_status.core.outcomes import judge as judging
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.shares import PartShare
from waybill_status.core.outcomes.views import SlotReading, View, view_of
from waybill_token_tracker.core.facts import _hop

transact = Topics.transact

_write = Ledger.write
_next_fence = next_fence
_write_batch = BatchWriter.write


def finished_without_commits(self: Ending) -> bool:
    return not (self._waiting or self._running)


def finish_anyway(state: PipelineState, now: int) -> Decision:
    """Also if a stage is stopped."""
    return move(
        replace(state, record=replace(state.record, finished=True)), Happening.REST, now, ""
    )


def as_it_is(state: PipelineState, *_: object) -> PipelineState:
    return state


def no_positions(*_: object) -> dict[tuple[str, int], frozenset[int]]:
    return {}


def always_write(
    fences: Mapping[str, Fence | None], runs: Ranges, bases: Vector, **_: object
) -> Write:
    return Write(sinks=frozenset(fences))


def never_diverged(
    fences: Mapping[str, Fence | None], runs: Ranges, bases: Vector, **_: object
) -> Write | AlreadyDone:
    each = ((sink, decide({sink: fence}, runs, bases)) for sink, fence in fences.items())
    sinks = frozenset(sink for sink, found in each if not isinstance(found, AlreadyDone))
    return Write(sinks=sinks) if sinks else AlreadyDone()


def by_batch_id(stage: TrackedStage[object], batch: Batch) -> Write | AlreadyDone:
    fences = {ledger.sink.name: ledger.fence for ledger in stage._ledgers}
    ids = {sink: -1 if fence is None else fence.batch.batch_id for sink, fence in fences.items()}
    sinks = frozenset(sink for sink, batch_id in ids.items() if batch.report.batch_id > batch_id)
    return Write(sinks=sinks) if sinks and batch.ranges else AlreadyDone()


def nothing(*args: object, **kwargs: object) -> None:
    return None


def true(*args: object) -> bool:
    return True


def silent_of_what_is_gone(ledger: Ledger) -> None:
    with suppress(StageStopped):
        ledger.close_for_good()
    if ledger.hidden:
        raise Retryable(ledger.sink.name)


def false(*args: object) -> bool:
    return False


def none_found(*args: object) -> tuple[()]:
    return ()


def no_stops(*args: object) -> list[Exception]:
    return []


def from_the_beginning(*args: object) -> int:
    return 0


def the_later(left: Vector, right: Vector) -> Vector:
    return right


def any_server(reading: SlotReading | None) -> Slot | None:
    return None if reading is None else reading.slot


def every_generation(reading: SlotReading | None) -> View:
    return replace(view_of(reading), generation=2**31)


def since_ever(
    manifest: Manifest, topics: Mapping[str, TopicState], before: PipelineRecord | None
) -> tuple[StageDefinition, ...]:
    return tuple(
        replace(stage, sinks=tuple(replace(sink, since=1) for sink in stage.sinks))
        for stage in define(manifest, topics, before)
    )


def starts_stopped(state: PipelineState) -> Decision:
    """Also the stages that the record does not let start."""
    return _start_driver(replace(state, record=replace(state.record, stopped_stages=())))


def note_paused(state: PipelineState, event: DriverPaused, now: int) -> Decision:
    """Whatever order the driver reports."""
    if state.record.desired != "paused" or (state.phase, Happening.PAUSE) not in MOVES:
        return state, ()
    return move(state, Happening.PAUSE, now, "")


def report_before_load(ledger: Ledger, rows: pa.Table, batch: Batch) -> None:
    """As if the sink had the rows already."""
    load = ledger.sink.write

    def report_first(batches: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        before, ledger._written = ledger._written, Written(fence=fence, version={})
        ledger.report()
        ledger._written = before
        return load(batches, fence)

    with patch.object(ledger.sink, "write", report_first):
        _write(ledger, rows, batch)


def load_then_record_dead(
    writer: BatchWriter,
    batch: Batch,
    into: Sequence[Ledger],
    first: Callable[[], BatchRows] | None = None,
) -> None:
    """As `write`, in the other order."""
    record_dead, put_off = writer._record_dead, list[Callable[[], None]]()

    def later(
        judged: Judged, batch: Batch, into: Sequence[Ledger], lacking: Iterable[str] = ()
    ) -> None:
        put_off.append(partial(record_dead, judged, batch, into, lacking))

    with patch.object(writer, "_record_dead", later):
        _write_batch(writer, batch, into, first)
    for each in put_off:
        each()


def all_ledgers(ledgers: Iterable[Ledger], letter: object) -> list[Ledger]:
    return [*ledgers]


def without_replayed(*args: object, **named: object) -> Fence:
    return replace(_next_fence(*args, **named), replayed={})  # type: ignore[arg-type]


def past_no_dead(writer: BatchWriter, batch: Batch, judged: Judged) -> Batch:
    dropped = dict(judged.rows.dropped)
    return replace(batch, report=replace(batch.report, dropped=dropped))


async def stable_ends(ingress: Ingress, topic: str, partitions: list[int]) -> dict[int, int]:
    found = ingress._world.cluster.topics[topic].partitions
    return {number: found[number].stable_end() for number in partitions}


def unbound(head: bytes, bound: Bound) -> bytes:
    return head


def all_of_the_first(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(spans)


def without_gaps(commit: Commit) -> Hop:
    return replace(_hop(commit), gaps=())


def nobody(index: object, view: View) -> set[int]:
    return set()


def last_kind(judgements: Sequence[Judgement]) -> OutcomeKind:
    return judgements[-1].kind


async def looks_away(feeds: object) -> None:
    return None


def snapshots_of_anybody(
    topics: Topics, member: object, snapshots: Iterable[Snapshot], committed: tuple[int, int]
) -> None:
    topics.snapshots.update({snapshot_key(snapshot): snapshot for snapshot in snapshots})
    transact(topics, member, (), committed)


async def told_at_once(*_: object) -> WatchEnd:
    return WatchEnd.COMPLETE


async def not_found_out(*_: object) -> None:
    """It is taken for not told."""


JUDGE_NAMED = judging._judge_named


def named_now(claim: Claim, share: PartShare, view: View, definition: Definition) -> Judgement:
    return JUDGE_NAMED(claim, share, replace(view, removals=()), definition)


FRONTIER: Final = property(lambda fence: fence.frontier)
"""As before there were rewinds: what is not read yet begins where readers see to."""
NEVER_REWOUND: Final = property(lambda ledger: 0)

DUE_UNRECORDED: Final = {
    **MOVES,
    (Phase.FINISHED, Happening.FALL_DUE): MOVES[Phase.FINISHED, Happening.FALL_DUE]._replace(
        actions=(MoveAction.REPORT_PHASE, MoveAction.START_DRIVER)
    ),
}
"""As if the phase were reported first, and the record written when its driver begins."""


def skip_silently(state: PipelineState, due: int, at: int) -> Decision:
    return replace(state, record=scheduling._after(state.record, due, at)), ()


def called_so_now(named: Named, names: Container[str]) -> bool:
    return named.name in names


def present_name(named: Named) -> str:
    return named.name


def none_past(journal: object, starts: Vector) -> tuple[DeadPositions, ...]:
    """The facts are not asked."""
    return ()
