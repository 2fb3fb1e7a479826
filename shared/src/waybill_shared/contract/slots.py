"""A pipeline's slot in Redis: what the tracker writes and status reads, and under which keys.

The slot is a cache of facts. It counts only while its stamp names the very server that answers,
so a flush, an old dump or a replica that lags is seen as missing knowledge, never as an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from waybill_shared.contract.events import (
    Definition,
    IgnoredFields,
    LifecycleEvent,
    PartitionOffset,
    SinkWait,
    StageDefinition,
)
from waybill_shared.contract.vectors import Span

SLOT_VERSION = 5  # of what a snapshot holds
NON_FINAL_AGE_MS_MAX = 5_000  # a non-final answer needs a tracker that is alive
HISTORY_LENGTH_MAX = 2_000  # batches remembered per sink; older ones answer without details

Losses = dict[str, tuple[Span, ...]]
"""What will never be processed, by LossReason; each span says where it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What a stage's batches so far took, and where in a sink's topic all of it stands.

    Both sides are cumulative, so a hop means: who covers `outputs` has everything of `inputs`.
    """

    sequence: int
    inputs: tuple[PartitionOffset, ...]
    outputs: tuple[PartitionOffset, ...]
    gaps: tuple[Span, ...] = ()
    """Behind what was written before: where rows of others stand, or aborted ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """How far one sink of one stage has come: in its stage's inputs, and in root inputs.

    Both pass what is set aside. `set_aside` is in the topics where that was found: the inputs of
    the stage, and what stands before them. `lost` is what of the root inputs never comes here.
    """

    frontier: tuple[PartitionOffset, ...] = ()
    reached: tuple[PartitionOffset, ...] = ()
    hops: tuple[Hop, ...] = ()
    set_aside: Losses = field(default_factory=dict)
    lost: Losses = field(default_factory=dict)
    sequence: int = -1
    batch_id: int = -1
    committed_at: int = 0
    batch_rows: int = 0
    version: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The stages, with those of their sinks, that were in the pipeline until `generation`."""

    generation: int
    stages: tuple[StageDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Everything that answers a token of one pipeline. `sinks` is by `sink_key`.

    `former` is by `stage_key`: where it began in topics whose ids are retired now. `removals` are
    what earlier definitions had and the present one has not, the newest last.
    """

    tenant: str
    pipeline_uid: str
    generation: int = 0
    definition: Definition | None = None
    sinks: dict[str, SinkState] = field(default_factory=dict)
    lifecycle: LifecycleEvent | None = None  # the newest transition
    heard_at: int = 0  # when the runner was last heard of, by the tracker's clock
    blocked_by: str | None = None  # what a running driver waits for, by the newest of those
    waits: tuple[SinkWait, ...] = ()  # what it waits for in single sinks, by the same
    ignored: tuple[IgnoredFields, ...] = ()  # by the newest of those too
    former: dict[str, tuple[PartitionOffset, ...]] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a sink in root coordinates, kept as history so that a token finds its batch."""

    sink: str  # its key in the slot
    before: tuple[PartitionOffset, ...] = ()
    reached: tuple[PartitionOffset, ...]
    batch_id: int
    sequence: int
    committed_at: int
    batch_rows: int
    version: dict[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A Progress as histories keep it: whoever passes it on need not look into it."""

    sink: str
    progress: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A slot as a snapshot keeps it, with the newest of its history."""

    slot: Slot
    history: tuple[Entry, ...]


_slot = TypeAdapter(Slot)
_saved = TypeAdapter(Saved)
_progress = TypeAdapter(Progress)


def sink_key(stage: str, sink: str, since: int) -> str:
    """One life of a sink: a name that returns is another sink."""
    return f"{stage}/{sink}@{since}"


def keys_of(stages: Iterable[StageDefinition]) -> set[str]:
    return {sink_key(s.name, sink.name, sink.since) for s in stages for sink in s.sinks}


def stage_key(stage: StageDefinition) -> str:
    return f"{stage.name}@{stage.since}"


def slot_to_json(slot: Slot) -> str:
    return _slot.dump_json(slot).decode()


def slot_from_json(text: str | bytes) -> Slot:
    return _slot.validate_json(text)


def saved_to_json(saved: Saved) -> str:
    return _saved.dump_json(saved).decode()


def saved_from_json(text: str | bytes) -> Saved:
    return _saved.validate_json(text)


def entry_of(progress: Progress) -> Entry:
    return Entry(progress.sink, progress_to_json(progress))


def progress_to_json(progress: Progress) -> str:
    return _progress.dump_json(progress).decode()


def progress_from_json(text: str | bytes) -> Progress:
    return _progress.validate_json(text)


@dataclass(frozen=True, slots=True)
class Keys:
    """Names in Redis. The braces keep all keys of one pipeline on one node of a cluster."""

    prefix: str

    def slot(self, tenant: str, pipeline_uid: str) -> str:
        """A hash: `slot`, `run_id`, `topic`, `partition`, `position`, `version`, `mark`, `at`,
        `confirmed_at`."""
        return f"{self.prefix}:{{{tenant}/{pipeline_uid}}}:slot"

    def history(self, tenant: str, pipeline_uid: str, sink: str) -> str:
        """A sorted set of Progress as JSON, scored by its order."""
        return f"{self.prefix}:{{{tenant}/{pipeline_uid}}}:history:{sink}"

    def kept(self) -> str:
        """A hash with a field for each partition that a tracker holds: gone when Redis forgot."""
        return f"{self.prefix}:kept"

    def wake(self) -> str:
        """The channel that carries `tenant/uid` whenever a slot has changed."""
        return f"{self.prefix}:wake"
