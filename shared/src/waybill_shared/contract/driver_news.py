"""What a driver reports of its run apart from commits: the values that its messages consist of."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWait:
    """The obstacle of a stage in one of its sinks, while the others go on."""

    stage: str
    sink: str
    blocked_by: str  # an Obstacle
    message: str | None = None  # what the sink said, in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class StageActivity:
    """The progress of the batches of a stage. Times are durations, as driver and runner have no
    clock in common; usual ones are 0 while nothing is known."""

    stage: str
    batch_ms: int | None = None  # how long its batch has been running; None: it runs none
    quiet_ms: int = 0  # since the batch has last made progress
    usual_ms: int = 0  # the usual length of a batch
    sink: str | None = None  # the sink that the batch waits for, if it waits for nothing else
    waiting_ms: int = 0  # for how long records have been waiting without a commit
    usual_pause_ms: int = 0  # the usual pause between commits
    lag_grows: bool = False  # more records wait than at the beginning of this time
    batches: int = 0  # that have ended well in this run
    rows: int = 0  # that its sinks have got in this run, each sink counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintenance:
    """A task has kept the table of a sink in order, or could not. `done`: by what is counted."""

    stage: str
    sink: str
    task: str
    done: dict[str, int]
    problem: str | None = None  # why nothing was done, with a hint


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredFields:
    """The fields and records that a driver has left out of an input since it started.

    That is fields that are no columns, and records that a rule drops. Records that a rule only
    warns of are counted, too. A batch that is done again counts again.
    """

    input: str
    records: int  # that had such a field
    warnings: tuple[str, ...]  # one for each of the first names
    dropped: dict[str, int] = field(default_factory=dict)  # records, by rule, or `malformed`
    warned: dict[str, int] = field(default_factory=dict)  # records that went on, by rule
