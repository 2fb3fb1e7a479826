"""The messages of the `waybill.*` topics as values; `schemas/avro` is their form on the wire.

Times are milliseconds since the epoch. Nothing here reads a clock or talks to Kafka.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.commands import CommandBody, QuestionBody, StopMode
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.dead_letter_facts import DeadLetters, DeadPositions
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.contract.manifest.applied import AppliedManifest, EarlierManifest
from waybill_shared.contract.offsets import Offsets
from waybill_shared.contract.replays import ReplayMessage
from waybill_shared.contract.requests import RequestAnswer, RequestClaim
from waybill_shared.contract.rescales import Rescaled
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.stopped_stages import StoppedStage
from waybill_shared.contract.vectors import TopicPartition, Vector
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.words import Action, OperationState

FieldMap = dict[str, str]
Desired = Literal["running", "paused", "stopped", "deleted"]  # `phase` says what it really is

NEVER: Final = 2**31 - 1  # a generation that no pipeline reaches
SLOT: Final = -1  # in place of the number of a chunk: the slot itself
MARKER: Final = 1  # offsets, at least, that the end of a transaction uses after rows of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    topic: str
    topic_id: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A run of offsets [start, end) that holds no row of a sink."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where the rows of a batch are in one partition of a sink's topic; `end` is cumulative. So are
    `gaps`, before its first batch and between the newest: markers, rows of others, aborted rows."""

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Records that will not be processed. A deleted topic is set aside up to ENDLESS."""

    reason: str  # a LossReason
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Stage `stage` has made the effects of `inputs` durable in `sink`."""

    stage: str
    sink: str
    since: int  # the life of the sink: see SinkDefinition
    epoch: int
    batch: BatchReport
    inputs: tuple[Range, ...]
    frontier: Offsets
    outputs: tuple[Output, ...]
    set_aside: tuple[SetAside, ...] = ()  # cumulative, as in the fence
    versions_from: int = 0  # the versions of batches with a lower sequence are unknown
    rewind: int = 0  # as in the fence
    rewound: Offsets = field(default_factory=dict, hash=False)  # as in the fence
    key: str = ""  # of the sink in the slot, if not made of these names
    replayed: Offsets = field(default_factory=dict, hash=False)  # as in the fence, or farther


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDefinition:
    name: str
    topic: str
    topic_id: str
    root: bool
    bases: Offsets = field(hash=False)
    whole: Offsets = field(default_factory=dict, hash=False)  # of a root: from here on in all sinks
    retired: tuple[str, ...] = ()  # ids that the topic of this name had before

    @property
    def ids(self) -> frozenset[str]:
        """The id of its topic, and those that the topic of this name had before."""
        return frozenset((self.topic_id, *self.retired))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDefinition:
    name: str
    kind: str
    target: str
    topic_id: str | None
    terminal: bool
    since: int  # the generation that added it: a name that is used again is another sink
    bases: Offsets = field(default_factory=dict, hash=False)  # if added later: its latest start
    retired: tuple[str, ...] = ()  # ids that its topic had before
    moved: int = 0  # the generation in which its topic was created again, the last time
    awaited_since: int = 0  # tokens of earlier generations do not wait for it
    guarantee: str = "once"  # how often a row is there
    was: tuple[str, ...] = ()  # its names before this one, the first one first

    @property
    def ids(self) -> frozenset[str]:
        """The id of its topic, and those that its topic had before; none if it has no topic."""
        return frozenset(() if self.topic_id is None else (self.topic_id, *self.retired))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDefinition:
    name: str
    since: int  # the generation that added it: a name used again is another stage
    inputs: tuple[InputDefinition, ...]
    sinks: tuple[SinkDefinition, ...]
    was: tuple[str, ...] = ()  # as of a sink

    @property
    def bases(self) -> dict[TopicPartition, int]:
        """Where the stage started, in all its inputs."""
        return {place: base for each in self.inputs for place, base in each.bases.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    name: str
    deleted: bool
    stages: tuple[StageDefinition, ...]
    was: tuple[str, ...] = ()  # its names before this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    tenant: str
    pipeline_uid: str
    generation: int
    at: int
    body: Definition | Commit | DeadLetters


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecord:
    tenant: str
    pipeline_uid: str
    name: str
    generation: int
    desired: Desired
    manifest: AppliedManifest
    stages: tuple[StageDefinition, ...]
    created_at: int
    updated_at: int
    commanded_at: int  # offset of the last command that is in this record
    life: int  # how many pipelines had this name before
    closed: bool = False  # a deleted one with nothing left to report
    commands_id: str = ""  # of the topic in which `commanded_at` counts
    earlier: tuple[EarlierManifest, ...] = ()  # the newest of those before, oldest first
    desired_by: str = ""  # the actor of the command that asked for `desired`
    stop_mode: StopMode = StopMode.CHECKPOINT  # of the newest stop
    rescaled: Rescaled | None = None  # unless a manifest has changed `parallelism` since
    run: int = 0  # the number of its newest run; 0: it never ran
    finished: bool = False  # that run has read all that there was, and no other is wanted
    next_run_at: int | None = None  # the first time of its schedule that has not come yet
    rewinds: tuple[StageRewind, ...] = ()  # the newest of each partition, done or not
    dead_letters: tuple[DeadLetterRequest, ...] = ()  # those that no run has done yet
    stopped_stages: tuple[StoppedStage, ...] = ()  # those that no run starts, the oldest first
    was: tuple[str, ...] = ()  # its names before this one; its uid is made of the first one
    reserved_for: str = ""  # of a life that is only a name: the uid of the pipeline that has it
    reserved_in: int = 0  # the generation of that pipeline then; a later one may not get the name

    @property
    def wants_run(self) -> bool:
        """True if it is to have a driver."""
        return self.desired in ("running", "paused")

    @property
    def has_finished(self) -> bool:
        """True if it is to run, and nobody wants a run after the one that has finished."""
        return self.finished and self.desired == "running"

    def root_inputs(self) -> dict[str, InputDefinition]:
        """Return the inputs that no stage of this pipeline writes, by name."""
        return {i.name: i for stage in self.stages for i in stage.inputs if i.root}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    tenant: str
    pipeline_uid: str
    id: str
    pipeline: str
    life: int  # of the name: how many pipelines had it before
    actor: str
    request_id: str
    at: int
    body: CommandBody

    @property
    def action(self) -> Action:
        return self.body.action

    @property
    def about(self) -> str:
        """The uid of a pipeline. Its runner gets the command."""
        asked = self.body.about if isinstance(self.body, QuestionBody) else None
        return asked or self.pipeline_uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    tenant: str
    pipeline_uid: str
    id: str
    pipeline: str
    action: Action
    actor: str
    state: OperationState
    generation: int | None
    errors: tuple[Problem, ...]
    warnings: tuple[str, ...]
    at: int
    problem: str | None = None  # why it failed: a Slug
    result: str | None = None  # what a check has found: JSON, at most 256 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Up to where a stage has written in one sink.

    `frontier`, `outputs` and `set_aside` are cumulative; the frontier has passed what is set aside.
    `rewind` is the number of the newest rewind in the sink, `rewound` what it has moved back. The
    sink has the replays that name it below `replayed`, a position in `waybill.replays`."""

    tenant: str
    pipeline_uid: str
    stage: str
    sink: str
    generation: int
    epoch: int
    batch: BatchReport
    inputs: tuple[Range, ...]
    frontier: Offsets
    outputs: tuple[Output, ...]
    set_aside: tuple[SetAside, ...] = ()
    batches: int = 0  # how many it took in turn with the stage's other sinks
    lifecycle_id: str = ""  # of the topic in which `epoch` counts
    dead: tuple[DeadPositions, ...] = ()  # of a journal: what a batch that comes again leaves out
    rewind: int = 0
    rewound: Offsets = field(default_factory=dict, hash=False)
    replayed: Offsets = field(default_factory=dict, hash=False)

    @property
    def position(self) -> Vector:
        """Where the next batch begins: at the frontier, if the partition is not rewound."""
        return {**self.frontier, **self.rewound} if self.rewound else self.frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A packed slot, or a `chunk` of its dead letters; empty if deleted. `position`: in commits."""

    tenant: str
    pipeline_uid: str
    partition: int
    position: int
    slot_version: int
    slot: str
    at: int
    topic_id: str = ""
    chunk: int = SLOT


Message = (
    Fact
    | PipelineRecord
    | Command
    | Reply
    | LifecycleEvent
    | Beat
    | Fence
    | Snapshot
    | ReplayMessage
    | RequestClaim
    | RequestAnswer
    | ConnectorProgress
    | TokenWatch
    | WebhookDelivery
    | StatusEvent
)


def pipeline_key(tenant: str, pipeline_uid: str) -> str:
    """Return the Kafka key that all facts about one pipeline share."""
    return f"{tenant}/{pipeline_uid}"


def snapshot_key(snapshot: Snapshot) -> str:
    key = pipeline_key(snapshot.tenant, snapshot.pipeline_uid)
    return key if snapshot.chunk == SLOT else f"{key}/dead/{snapshot.chunk}"


def command_key(command: Command) -> str:
    """Return the Kafka key of a command and its reply: that of the pipeline that it is about."""
    return pipeline_key(command.tenant, command.about)
