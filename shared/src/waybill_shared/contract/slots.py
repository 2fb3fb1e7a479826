"""A pipeline's slot in Redis: what the tracker writes and status reads, and under which keys.

The slot is a cache of facts. It counts only while its stamp names the very server that answers. So
after a flush, or with an old dump or a replica that lags, facts are missing, but none is wrong.
"""

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.driver_news import IgnoredFields, SinkWait
from waybill_shared.contract.events import Commit, Definition, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.lifecycle_events import Condition, LifecycleEvent
from waybill_shared.contract.offsets import StoredOffsets
from waybill_shared.contract.vectors import Span, Vector

SLOT_VERSION = 9  # of what a snapshot holds
NON_FINAL_AGE_MS_MAX = 5_000  # a non-final answer needs a tracker that is alive
HISTORY_LENGTH_MAX = 2_000  # batches remembered per sink; older ones answer without details

Losses = dict[str, tuple[Span, ...]]
"""What will never be processed, by LossReason; each span says where it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """The positions that the batches of a stage have read so far, and where all of it is in the
    topic of a sink.

    Both sides are cumulative, so who covers `outputs` has everything of `inputs`.
    """

    sequence: int
    inputs: StoredOffsets
    outputs: StoredOffsets
    gaps: tuple[Span, ...] = ()
    """After what was written before: offsets of rows of others, or of aborted ones."""
    replayed: StoredOffsets = field(default_factory=dict)  # as in the commit: in `outputs`, too


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """The progress of one sink of one stage: in the inputs of its stage, and in root inputs.

    Both pass what is set aside.

    `set_aside` is in the topics where it was found: the inputs of the stage, and the topics before
    them. `lost` is what never arrives here of the root inputs.
    """

    frontier: StoredOffsets = field(default_factory=dict)
    reached: StoredOffsets = field(default_factory=dict)
    hops: tuple[Hop, ...] = ()
    set_aside: Losses = field(default_factory=dict)
    lost: Losses = field(default_factory=dict)
    batch: BatchReport | None = None
    """The last one; None before the first commit."""
    versions_from: int = 0
    """The version in the sink of a batch with a lower sequence is not known any more."""
    began: StoredOffsets = field(default_factory=dict)
    """The offsets of its first rows in the partitions of its topic, if not 0."""
    steps: int = 0
    """How many Progress it has made."""
    rewind: int = 0
    rewound: StoredOffsets = field(default_factory=dict)
    """As in the fence: the number of its newest rewind, and what that has moved back."""
    rewritten: StoredOffsets = field(default_factory=dict)
    """The ends in its topic of what its newest rewind wrote again, once that is done. Readers that
    are past them have read no older record for the last time."""
    replayed: StoredOffsets = field(default_factory=dict)
    """As in the commit: the replays that name the sink below it are done here."""

    @property
    def position(self) -> Vector:
        """The position at which its next batch begins."""
        return {**self.frontier, **self.rewound} if self.rewound else self.frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadSource:
    """The position at which a record died that a replay has read."""

    topic: str
    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEntry:
    """A part of a root partition that went to a dead-letter topic.

    It is one record. If it was found after a hop, or is old, it is up to `up_to` of the records
    from `start` to before `end`.

    One hop has several entries with one `id`: one for each run of root offsets that it read. Old
    ones are in the `runs` between those two, as [start, end), and nowhere else. Without `runs` they
    may be anywhere there.
    """

    id: str
    stage: str  # its key
    sink: str | None  # its key; None: all sinks of the stage
    topic_id: str
    partition: int
    start: int
    end: int
    up_to: int = 1
    exact: bool = True
    reason: str
    rule: str | None = None
    message: str = ""
    dead_topic: str | None = None
    dead_partition: int = -1
    dead_offset: int = -1
    runs: tuple[tuple[int, int], ...] = ()
    source: DeadSource | None = None
    """Of an exact entry at a position of `waybill.replays`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadCount:
    """The number of entries that one root partition has outside of the slot, of about how many
    records, and how long the longest is."""

    topic_id: str
    partition: int
    entries: int
    longest: int
    records: int = 0
    """Entries that were counted before this field existed add nothing to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """One or more dead records with a source that is not completely known.

    `open` is by sink that has not reported yet what it read there; `placed` is what has become
    entries.
    """

    entry: DeadEntry
    open: tuple[tuple[str, Span], ...]
    placed: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The stages, with those of their sinks, that were in the pipeline until `generation`."""

    generation: int
    stages: tuple[StageDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Everything that answers a token of one pipeline.

    `sinks` is by `sink_key`. `former` is by `stage_key`: where the stage started in topics with ids
    that are retired now. `removals` are what earlier definitions had and the present one has not,
    the newest last.
    """

    tenant: str
    pipeline_uid: str
    generation: int = 0
    definition: Definition | None = None
    sinks: dict[str, SinkState] = field(default_factory=dict)
    lifecycle: LifecycleEvent | None = None  # the newest transition
    heard_at: int = 0  # of the runner's last message, by the tracker's clock
    blocked_by: str | None = None  # what a running driver waits for, by the newest of those
    waits: tuple[SinkWait, ...] = ()  # what it waits for in single sinks, by the same
    conditions: tuple[Condition, ...] = ()  # what is wrong with it, by the same
    ignored: tuple[IgnoredFields, ...] = ()  # by the newest of those too
    former: dict[str, StoredOffsets] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()
    dead: tuple[DeadCount, ...] = ()
    dead_sequences: dict[str, int] = field(default_factory=dict)
    """By stage key: every DeadLetters up to this number was received, and its entries are
    counted.
    """
    dead_waiting: tuple[DeadLetters, ...] = ()
    """Received, and not counted yet: one before, or the definition with the stage, is missing."""
    dead_unplaced: tuple[Unplaced, ...] = ()
    """Counted, but in no entry yet. Nobody is past the commits that these wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a sink in root coordinates, kept as history so that a token finds its batch."""

    sink: str  # its key in the slot
    before: StoredOffsets = field(default_factory=dict)
    reached: StoredOffsets
    batch: BatchReport
    began: StoredOffsets = field(default_factory=dict)  # as in SinkState
    outputs: StoredOffsets | None = None  # the ends of all that it wrote, if known
    gaps: tuple[Span, ...] = ()  # in what was written since the step before: nothing of the sink
    taken: StoredOffsets | None = None  # of the stage's inputs, if these are no roots
    number: int = -1  # of those of the sink, from 0 on; -1 if that was not counted


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
    dead_chunks: tuple[str, ...] = ()
    """Checksums of the snapshots that hold its dead letters."""


_slot = TypeAdapter(Slot)
_saved = TypeAdapter(Saved)
_progress = TypeAdapter(Progress)
_dead = TypeAdapter(DeadEntry)
_dead_list = TypeAdapter(tuple[DeadEntry, ...])


def sink_key(stage: str, sink: str, since: int) -> str:
    """Return the key of one life of a sink: a name that is used again is another sink."""
    return f"{stage}/{sink}@{since}"


def key_of(stage: StageDefinition, sink: SinkDefinition) -> str:
    """Return the key of a sink of that stage, whatever both are called now."""
    return sink_key(first_name(stage), first_name(sink), sink.since)


def stage_key(stage: StageDefinition) -> str:
    return f"{first_name(stage)}@{stage.since}"


def key_of_commit(commit: Commit) -> str:
    """Return the key of the sink that a commit is of."""
    return commit.key or sink_key(commit.stage, commit.sink, commit.since)


def key_of_letters(letters: DeadLetters) -> str:
    """Return the key of the stage in which these records died."""
    return letters.key or f"{letters.stage}@{letters.since}"


def slot_to_json(slot: Slot) -> str:
    return _slot.dump_json(slot).decode()


def slot_from_json(text: str | bytes) -> Slot:
    return _slot.validate_json(text)


def for_readers(slot: Slot) -> Slot:
    """Return the slot without letters that are no entries yet: only the tracker reads these."""
    if not (slot.dead_waiting or slot.dead_unplaced):
        return slot
    waiting = tuple(replace(each, letters=()) for each in slot.dead_waiting)
    return replace(slot, dead_waiting=waiting, dead_unplaced=())


def save_to_json(saved: Saved) -> str:
    return _saved.dump_json(saved).decode()


def load_from_json(text: str | bytes) -> Saved:
    return _saved.validate_json(text)


def entry_of(progress: Progress) -> Entry:
    return Entry(progress.sink, progress_to_json(progress))


def progress_to_json(progress: Progress) -> str:
    return _progress.dump_json(progress).decode()


def progress_from_json(text: str | bytes) -> Progress:
    return _progress.validate_json(text)


def dead_to_json(entry: DeadEntry) -> str:
    return _dead.dump_json(entry).decode()


def dead_from_json(text: str | bytes) -> DeadEntry:
    return _dead.validate_json(text)


def dead_list_from_json(text: str | bytes) -> tuple[DeadEntry, ...]:
    return _dead_list.validate_json(text)


@dataclass(frozen=True, slots=True)
class Keys:
    """Names in Redis. The braces keep all keys of one pipeline on one node of a cluster."""

    prefix: str

    def slot(self, tenant: str, pipeline_uid: str) -> str:
        """Return the key of a hash:

        `slot`, `run_id`, `topic`, `partition`, `position`, `version`, `mark`, `at`, `confirmed_at`.
        """
        return f"{self.prefix}:{{{tenant}/{pipeline_uid}}}:slot"

    def history(self, tenant: str, pipeline_uid: str, sink: str) -> str:
        """Return the key of a sorted set of Progress as JSON, scored by its order."""
        return f"{self.prefix}:{{{tenant}/{pipeline_uid}}}:history:{sink}"

    def dead(self, tenant: str, pipeline_uid: str, topic_id: str, partition: int) -> str:
        """Return the key of a sorted set of DeadEntry as JSON, scored by `end`."""
        return f"{self.prefix}:{{{tenant}/{pipeline_uid}}}:dead:{topic_id}:{partition}"

    def kept(self) -> str:
        """Return the key of a hash with a field for each partition of a tracker. It may be lost."""
        return f"{self.prefix}:kept"

    def wake(self) -> str:
        """Return the name of the channel that carries `tenant/uid` whenever a slot has changed."""
        return f"{self.prefix}:wake"
