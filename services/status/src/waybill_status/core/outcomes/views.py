"""Decides what can be said of a pipeline from what Redis has of it. Never guesses: what is not
known for sure is a fault of the view, and then every outcome is `unknown`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from waybill_shared.contract import slots
from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.events import Definition
from waybill_shared.contract.lifecycle import HEARTBEAT_AGE_MS_MAX, Phase
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.slots import DeadCount, Removal, SinkState, Slot
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.vectors import ENDLESS, Span, TopicPartition, Vector, beyond
from waybill_shared.contract.words import LossReason, Obstacle, UnknownReason

PipelineKey = tuple[str, str]
"""Tenant and uid."""
Loss = tuple[str, Span]
"""What will never be processed, with its reason."""

BLOCKED_BY_PHASE: Final[Mapping[str, Obstacle]] = {
    Phase.STOPPED: Obstacle.STAGE_STOPPED,
    Phase.DRAINING: Obstacle.STAGE_STOPPED,
    Phase.CHECKPOINT_STOPPING: Obstacle.STAGE_STOPPED,
    Phase.STOPPING: Obstacle.STAGE_STOPPED,
    Phase.FAILED: Obstacle.STAGE_FAILED,
    Phase.FINISHING: Obstacle.NOT_RUNNING,
    Phase.FINISHED: Obstacle.NOT_RUNNING,
}
BLOCKED_WHILE_ALIVE: Final[Mapping[str, Obstacle]] = {
    Phase.PAUSED: Obstacle.PAUSED,
    Phase.RECOVERING: Obstacle.RECOVERING,
}
"""As long as its runner is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStamp:
    """The writer of the slot, the change that it shows, when that was confirmed, and which server
    answers now.

    `mark` belongs to the last write alone: after Redis lost the slot, `version` starts again. `at`
    is by the tracker's clock. `age_ms` is by the server's clock alone, and None if nobody ever
    confirmed.
    """

    server_run_id: str
    run_id: str | None
    version: int
    at: int
    age_ms: int | None
    mark: str = ""

    @property
    def fresh(self) -> bool:
        """True if the slot was confirmed lately. A negative age means that the server's clock was
        set back; the next confirmation corrects it."""
        return self.age_ms is not None and 0 <= self.age_ms <= slots.NON_FINAL_AGE_MS_MAX

    @property
    def now_ms(self) -> int:
        """The time of the tracker's clock at this moment: messages of runners are dated by it."""
        return self.at + max(0, self.age_ms or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLosses:
    """The offsets that will never reach one sink: spans by partition, and the topics that are
    deleted."""

    spans: Mapping[TopicPartition, tuple[Loss, ...]] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    def of(self, partition: TopicPartition, reached: Vector) -> tuple[Loss, ...]:
        """Return the losses of a partition with their reasons. A deleted topic counts even if
        nobody named this partition of it."""
        topic_id, number = partition
        known = self.spans.get(partition, ())
        reason = self.gone.get(topic_id)
        if reason is None or any(span.end == ENDLESS for _, span in known):
            return known
        start = reached.get(partition, 0)
        rest = Span(topic_id=topic_id, partition=number, start=start, end=ENDLESS)
        return (*known, (reason, rest))

    def where_unread(self, read: Vector) -> "SinkLosses":
        """Return the losses without records that went with the sink's topic but were `read`
        before."""
        went = LossReason.SINK_TOPIC_RECREATED
        spans = {
            partition: tuple(
                (reason, left)
                for reason, span in losses
                for left in (beyond([span], read) if reason == went else [span])
            )
            for partition, losses in self.spans.items()
        }
        return replace(self, spans=spans)


NOTHING: Final = SinkLosses()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReading:
    """One reading of a pipeline's slot; `slot` is None if there is none that we can read."""

    stamp: SlotStamp
    slot: Slot | None
    reached: Mapping[str, Vector] = field(default_factory=dict)
    losses: Mapping[str, SinkLosses] = field(default_factory=dict)
    dead: Mapping[TopicPartition, DeadCount] = field(default_factory=dict)
    dead_missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The knowledge of a pipeline. Equal views give every token the same outcome, so a heartbeat
    alone wakes nobody.

    `dead` counts the entries next to the slot. `dead_missing` has the keys of stages of which not
    all dead letters are known.
    """

    fault: UnknownReason | None
    fresh: bool = False
    generation: int = -1
    definition: Definition | None = None
    reached: Mapping[str, Vector] = field(default_factory=dict)
    losses: Mapping[str, SinkLosses] = field(default_factory=dict)
    former: Mapping[str, Vector] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()
    dead: Mapping[TopicPartition, DeadCount] = field(default_factory=dict)
    dead_missing: frozenset[str] = frozenset()
    blocked_by: str | None = None
    next_run_at: int | None = None
    """When its schedule begins the next run, if it has finished."""
    waits: tuple[SinkWait, ...] = ()
    failed: frozenset[str] = frozenset()
    """Stages that have failed by themselves, while the others go on."""
    version: int = field(compare=False)
    versions_from: Mapping[str, int] = field(default_factory=dict)
    """By sink key, if it is not 0: versions of batches with lower sequences are deleted."""

    def wait_of(self, stage: str, sink: str) -> SinkWait | None:
        same = (wait for wait in self.waits if (wait.stage, wait.sink) == (stage, sink))
        return next(same, None)

    def losses_of(self, key: str) -> SinkLosses:
        return self.losses.get(key, NOTHING)


def make_reading(stamp: SlotStamp, slot: Slot | None) -> SlotReading:
    if slot is None:
        return SlotReading(stamp=stamp, slot=None)
    return SlotReading(
        stamp=stamp,
        slot=slot,
        reached={key: state.reached for key, state in slot.sinks.items()},
        losses={key: _losses_in(state) for key, state in slot.sinks.items() if state.lost},
        dead={(c.topic_id, c.partition): c for c in slot.dead},
        dead_missing=_dead_missing(slot),
    )


def view_of(reading: SlotReading | None) -> View:
    """Return the view of a reading; without one, Redis did not answer."""
    if reading is None:
        return View(fault=UnknownReason.REDIS_AWAY, version=0)
    slot, stamp = usable_slot(reading), reading.stamp
    if slot is None:
        return View(fault=UnknownReason.SLOT_MISSING, version=stamp.version)
    return View(
        fault=None if slot.definition is not None else UnknownReason.NO_DEFINITION,
        fresh=stamp.fresh,
        generation=slot.generation,
        definition=slot.definition,
        reached=reading.reached,
        losses=reading.losses,
        former=slot.former,
        removals=slot.removals,
        dead=reading.dead,
        dead_missing=reading.dead_missing,
        blocked_by=_find_obstacle(slot, stamp.now_ms),
        next_run_at=_next_run_at(slot),
        waits=waits_of(slot, stamp.now_ms),
        failed=_failed_stages(slot),
        version=stamp.version,
        versions_from={
            key: state.versions_from for key, state in slot.sinks.items() if state.versions_from
        },
    )


def fault_of(view: View, generation: int) -> UnknownReason | None:
    """Return why nothing can be said of tokens of that generation, if so."""
    if view.fault is not None or view.definition is None:
        return view.fault or UnknownReason.NO_DEFINITION
    return UnknownReason.GENERATION_BEHIND if generation > view.generation else None


def usable_slot(reading: SlotReading | None) -> Slot | None:
    """Return the slot if it was written to the very server that answers."""
    if reading is None or reading.stamp.run_id != reading.stamp.server_run_id:
        return None
    return reading.slot


def silent(slot: Slot, now_ms: int) -> bool:
    """Return True if nothing was received from the runner for several heartbeats."""
    return now_ms - slot.heard_at > HEARTBEAT_AGE_MS_MAX


def waits_of(slot: Slot, now_ms: int) -> tuple[SinkWait, ...]:
    """Return what sinks wait for; nothing if there is no driver, or no news of one."""
    event = slot.lifecycle
    if event is None or event.phase in BLOCKED_BY_PHASE or silent(slot, now_ms):
        return ()
    return slot.waits


def _dead_missing(slot: Slot) -> frozenset[str]:
    """Return the keys of stages of which some dead letters are missing. That is so if a later fact
    was received, or if a sink has passed a later one. Records that wait for the hop that wrote them
    are not missing: nothing that the hop read has arrived."""
    numbers = [(slots.key_of_letters(each), each.sequence) for each in slot.dead_waiting]
    if any(_dead_sequence(state) for state in slot.sinks.values()):
        present = Topology(slot.definition.stages if slot.definition is not None else ())
        numbers += [
            (slots.stage_key(each.stage), _dead_sequence(slot.sinks[each.key]))
            for each in present.with_removed(slot.removals).sinks
            if each.key in slot.sinks
        ]
    heard = slot.dead_sequences
    return frozenset(stage for stage, number in numbers if number > heard.get(stage, 0))


def _dead_sequence(state: SinkState) -> int:
    return 0 if state.batch is None else state.batch.dead_sequence


def _losses_in(state: SinkState) -> SinkLosses:
    spans: dict[TopicPartition, tuple[Loss, ...]] = {}
    gone: dict[str, str] = {}
    for reason, lost in state.lost.items():
        for span in lost:
            spans[span.key] = (*spans.get(span.key, ()), (reason, span))
            if span.end == ENDLESS:
                gone.setdefault(span.topic_id, reason)
    return SinkLosses(spans=spans, gone=gone)


def _failed_stages(slot: Slot) -> frozenset[str]:
    """Return the stages that are stopped alone; none if the pipeline is stopped as a whole."""
    event = slot.lifecycle
    if event is None or event.phase in BLOCKED_BY_PHASE:
        return frozenset()
    causes = ((each.stage, each.cause) for each in slot.conditions)
    failed = DegradedCause.STAGE_FAILED
    return frozenset(stage for stage, cause in causes if stage is not None and cause == failed)


def _next_run_at(slot: Slot) -> int | None:
    event = slot.lifecycle
    rests = event is not None and BLOCKED_BY_PHASE.get(event.phase) is Obstacle.NOT_RUNNING
    return event.next_run_at if event is not None and rests else None


def _find_obstacle(slot: Slot, now_ms: int) -> str | None:
    event = slot.lifecycle
    if event is None:
        return None
    if (stopped := BLOCKED_BY_PHASE.get(event.phase)) is not None:
        return stopped
    if silent(slot, now_ms):
        return Obstacle.RUNNER_SILENT
    if event.phase in BLOCKED_WHILE_ALIVE:
        return BLOCKED_WHILE_ALIVE[event.phase]
    return slot.blocked_by if event.phase in {Phase.STARTING, Phase.RUNNING} else None
