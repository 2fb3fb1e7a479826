"""What happens to a pipeline, and what is then to be done. Values only: `supervision` decides."""

from dataclasses import dataclass

from waybill_shared.contract.driver_news import IgnoredFields, SinkWait, TableUpkeep
from waybill_shared.contract.events import Command, LifecycleError, PipelineRecord, Problem
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Obstacle, OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A record that is asked for. `said`: it stands in Kafka already, as found at a start."""

    record: PipelineRecord
    command: Command | None
    said: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverWaits:
    """The run waits for a driver, `place` in the line; 0: it has one."""

    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRuns:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverBlocked:
    """The driver says what it waits for; without either: for nothing any more."""

    blocked_by: Obstacle | None
    waits: tuple[SinkWait, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverIgnores:
    """The driver says which fields of its inputs it leaves out, since it began."""

    fields: tuple[IgnoredFields, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverKept:
    """The driver has kept a table in order."""

    upkeep: TableUpkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFailed:
    """The driver says why it is about to end."""

    problems: tuple[Problem, ...]
    error: LifecycleError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnded:
    """Nothing of the run is left."""

    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    pass


DriverNews = (
    DriverWaits
    | DriverRuns
    | DriverBlocked
    | DriverIgnores
    | DriverKept
    | DriverFailed
    | DriverEnded
)
Event = Wanted | DriverNews | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Write down the state's record and what follows from it. It comes before all that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDriver:
    """`closing`: one that only shuts these sinks, reports what they hold, and ends."""

    closing: PipelineRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDriver:
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """The phase has changed."""

    phase_from: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatNow:
    """Something that heartbeats tell has changed: do not wait for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TellUpkeep:
    """A table was kept in order."""

    upkeep: TableUpkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFacts:
    """Say the last definition of a deleted pipeline, and write down that it was said.

    With an error: what its sinks hold may not have been reported.
    """

    error: LifecycleError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`problem` is why a command has failed, `result` what a validation has found."""

    command: Command
    state: OperationState
    errors: tuple[Problem, ...] = ()
    problem: Slug | None = None
    result: str | None = None


Move = Say | StartDriver | StopDriver | Announce | BeatNow | TellUpkeep | EndFacts | Answer
