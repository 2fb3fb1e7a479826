"""The commands that ingress writes and the stage runner carries out, as a closed union.

A command either changes the record of a pipeline, or is a question that changes none. Changes of
one pipeline are carried out one after the other. No other command waits for a question. `COMMANDS`
says the rest of each kind: whoever handles commands reads it, and knows no list of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Discriminator

from waybill_shared.contract.beginnings import Beginning, InputOffset
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.words import Action


class StopMode(StrEnum):
    """How a run stops, the weakest way first."""

    DRAIN = "drain"
    CHECKPOINT = "checkpoint"
    FORCE = "force"

    def is_stronger_than(self, other: "StopMode") -> bool:
        order = list(StopMode)
        return order.index(self) > order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRow:
    """One way to stop a run."""

    meaning: str
    asks_driver: bool
    """True if the driver ends by an order; else its process is killed."""
    limit_ms: int
    """How long it may take. Then the run stops as `then` says."""
    then: StopMode


STOP_MODES: Final[Mapping[StopMode, StopRow]] = {
    StopMode.DRAIN: StopRow(
        meaning="all that its inputs contain now reaches every sink first; later records wait",
        asks_driver=True,
        limit_ms=300_000,
        then=StopMode.CHECKPOINT,
    ),
    StopMode.CHECKPOINT: StopRow(
        meaning="the running batch ends, in its sinks and in Spark's checkpoint",
        asks_driver=True,
        limit_ms=120_000,
        then=StopMode.FORCE,
    ),
    StopMode.FORCE: StopRow(
        meaning="the driver is killed at once; the next run repeats its batch, each row once",
        asks_driver=False,
        limit_ms=60_000,
        then=StopMode.FORCE,
    ),
}
OTHER_NAMES: Final[Mapping[str, StopMode]] = {
    "graceful": StopMode.DRAIN,
    "immediate": StopMode.FORCE,
}
"""What other systems call these modes."""
RESTART_MODES: Final[Mapping[str, StopMode]] = {
    "safe": StopMode.CHECKPOINT,
    "force": StopMode.FORCE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    manifest: AppliedManifest
    reserved_in: int | None = None
    """The generation for which a new name was reserved; None if the name is not new."""
    action: Literal[Action.APPLY] = Action.APPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    paused: bool = False
    """True if its driver starts and begins no batch."""
    stage: str | None = None
    """The only stopped stage that starts; None: all of them."""
    action: Literal[Action.START] = Action.START


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    mode: StopMode = StopMode.CHECKPOINT
    action: Literal[Action.STOP] = Action.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    action: Literal[Action.PAUSE] = Action.PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    action: Literal[Action.RESUME] = Action.RESUME


@dataclass(frozen=True, slots=True, kw_only=True)
class PutDeadLetter:
    """A record that is to go to its dead-letter topic before any batch reads it."""

    topic: str
    partition: int
    offset: int
    reason: str


RestartFrom = Literal["earliest", "latest", "fresh"]
"""`fresh`: where stages began, as the manifest said then. These offsets are the bases of inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """At most one of `start_from`, `at` and `offsets` says where stages begin again. With
    `dead_letter` none does, and a pipeline that does not run stays so.
    """

    start_from: RestartFrom | None = None
    mode: StopMode = StopMode.CHECKPOINT
    """How its run ends that goes on now."""
    at: int | None = None
    """Begin with the first records that are not older than this."""
    offsets: tuple[InputOffset, ...] = ()
    stage: str | None = None
    """The only stage that begins again; None: each that reads root inputs, or the topics that
    `offsets` name."""
    confirmed: bool = False
    """True if whoever asks knows that rows are written again."""
    dead_letter: PutDeadLetter | None = None
    action: Literal[Action.RESTART] = Action.RESTART


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOffsets:
    """The places where stages begin in the next run, as `Restart` names them; nothing starts. If it
    names none, rewinds that no run has done yet are forgotten."""

    start_from: Beginning | None = None
    at: int | None = None
    offsets: tuple[InputOffset, ...] = ()
    stage: str | None = None
    confirmed: bool = False
    action: Literal[Action.SET_OFFSETS] = Action.SET_OFFSETS


Rewinding = Restart | SetOffsets
"""A change that may let stages begin elsewhere."""


def begins_elsewhere(body: Rewinding) -> bool:
    """Return True if the change says where stages begin."""
    return body.start_from is not None or body.at is not None or bool(body.offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    parallelism: int
    """Sets the number of tasks that run at once."""
    action: Literal[Action.RESCALE] = Action.RESCALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    name: str
    """What the pipeline is called from now on."""
    reserved_for: str | None = None
    """The uid of another pipeline: this life of the name is only reserved for it, so that no
    pipeline begins with it. Else the pipeline gets the name, which was reserved before."""
    reserved_in: int | None = None
    """The generation of that pipeline: the name is reserved until there is a later one. None if the
    pipeline had the name before."""
    action: Literal[Action.RENAME] = Action.RENAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    action: Literal[Action.DELETE] = Action.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Validate:
    manifest: AppliedManifest
    about: str | None = None
    """The uid of the pipeline that the manifest would change, if there is one."""
    action: Literal[Action.VALIDATE] = Action.VALIDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintain:
    about: str
    """The uid of the pipeline with the sink that owns the table."""
    sink: str
    dry_run: bool = False
    """True if the answer only says what would be done."""
    action: Literal[Action.MAINTAIN] = Action.MAINTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    about: str
    """The uid of the pipeline."""
    lines: int
    action: Literal[Action.LOGS] = Action.LOGS


PlainChange = Start | Stop | Pause | Resume | Restart | SetOffsets | Rescale | Rename | Delete
"""A change that brings no manifest."""
ChangeBody = Apply | PlainChange
QuestionBody = Validate | Maintain | Logs
CommandBody = Annotated[ChangeBody | QuestionBody, Discriminator("action")]


class CommandRow(NamedTuple):
    body: type[ChangeBody | QuestionBody]
    changes_record: bool  # of its pipeline; else it is a question
    needs_driver: bool  # before it is answered, or before it may change the record
    scope: Scope  # that a key needs to send it


COMMANDS: Final[Mapping[Action, CommandRow]] = {
    Action.APPLY: CommandRow(Apply, changes_record=True, needs_driver=True, scope=Scope.ADMIN),
    Action.START: CommandRow(Start, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.STOP: CommandRow(Stop, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.PAUSE: CommandRow(Pause, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.RESUME: CommandRow(Resume, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.RESTART: CommandRow(Restart, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.SET_OFFSETS: CommandRow(
        SetOffsets, changes_record=True, needs_driver=False, scope=Scope.ADMIN
    ),
    Action.RESCALE: CommandRow(Rescale, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.RENAME: CommandRow(Rename, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.DELETE: CommandRow(Delete, changes_record=True, needs_driver=False, scope=Scope.ADMIN),
    Action.VALIDATE: CommandRow(
        Validate, changes_record=False, needs_driver=True, scope=Scope.WRITE
    ),
    Action.MAINTAIN: CommandRow(
        Maintain, changes_record=False, needs_driver=True, scope=Scope.ADMIN
    ),
    Action.LOGS: CommandRow(Logs, changes_record=False, needs_driver=False, scope=Scope.READ),
}
"""A question that needs no driver is answered at once, by the runner of its pipeline."""
