"""Phases of a pipeline and the moves between them: one table, which the runner walks and from which
the docs are drawn.
"""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Final, NamedTuple

from waybill_shared.contract.commands import STOP_MODES, StopMode
from waybill_shared.contract.words import Action


class Phase(StrEnum):
    CREATED = "Created"
    SCHEDULING = "Scheduling"
    STARTING = "Starting"
    RUNNING = "Running"
    PAUSED = "Paused"
    RECOVERING = "Recovering"
    RESCALING = "Rescaling"
    RESTARTING = "Restarting"
    DRAINING = "Draining"
    CHECKPOINT_STOPPING = "CheckpointStopping"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    FINISHING = "Finishing"
    FINISHED = "Finished"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PhaseRow(NamedTuple):
    meaning: str
    moved_by: str
    """Who ends it."""
    allowed: tuple[Action, ...]
    """The changes that can be made in this phase. Others are refused, unless they ask for what the
    pipeline is to be already. See `allowed_actions`.
    """
    limit_ms: int | None = None
    """How long it may last by default. Then its driver is killed, unless it is `then` that follows.
    None: as long as it needs.
    """
    then: Phase | None = None


RUNNER: Final = "the runner"
DRIVER: Final = "its driver"
PERSON: Final = "a person"
CHANGE: Final = (Action.APPLY, Action.RENAME, Action.RESTART)
SIZE: Final = (Action.RESCALE,)
PLACE: Final = (Action.SET_OFFSETS,)
HOLD: Final = (Action.PAUSE, Action.RESUME)
END: Final = (Action.STOP, Action.DELETE)
PHASES: Final[Mapping[str, PhaseRow]] = {
    Phase.CREATED: PhaseRow("it is recorded, and nothing was done yet", RUNNER, (*CHANGE, *END)),
    Phase.SCHEDULING: PhaseRow("it waits for a driver", RUNNER, (*CHANGE, *SIZE, *HOLD, *END)),
    Phase.STARTING: PhaseRow(
        "its driver starts its stages", DRIVER, (*CHANGE, *SIZE, *HOLD, *END), limit_ms=180_000
    ),  # a cold JVM on a loaded machine takes 20 s
    Phase.RUNNING: PhaseRow("its stages process what comes", DRIVER, (*CHANGE, *SIZE, *HOLD, *END)),
    Phase.PAUSED: PhaseRow(
        "its driver is there, and begins no batch", PERSON, (*CHANGE, *SIZE, *HOLD, *END)
    ),
    Phase.RECOVERING: PhaseRow(
        "its driver has failed, and is started again later",
        RUNNER,
        (Action.START, *CHANGE, *SIZE, *HOLD, *END),
    ),
    Phase.RESCALING: PhaseRow(
        "its batch ends, then it gets a driver of another size",
        DRIVER,
        (*CHANGE, *SIZE, *HOLD, *END),
        limit_ms=STOP_MODES[StopMode.CHECKPOINT].limit_ms,
    ),
    Phase.RESTARTING: PhaseRow(
        "its driver ends, then the next run begins",
        DRIVER,
        (*CHANGE, *SIZE, *HOLD, *END),
        limit_ms=STOP_MODES[StopMode.CHECKPOINT].limit_ms,
    ),
    Phase.DRAINING: PhaseRow(
        "all that its inputs contained reaches every sink, then it stops",
        DRIVER,
        (Action.START, *CHANGE, *END),
        limit_ms=STOP_MODES[StopMode.DRAIN].limit_ms,
        then=Phase.CHECKPOINT_STOPPING,
    ),
    Phase.CHECKPOINT_STOPPING: PhaseRow(
        "its running batch ends, then it stops",
        DRIVER,
        (Action.START, *CHANGE, *END),
        limit_ms=STOP_MODES[StopMode.CHECKPOINT].limit_ms,
        then=Phase.STOPPING,
    ),
    Phase.STOPPING: PhaseRow(
        "its driver is killed, or closes sinks that are removed",
        DRIVER,
        (Action.START, *CHANGE, *END),
    ),
    Phase.STOPPED: PhaseRow(
        "it has no driver", PERSON, (Action.START, *CHANGE, *PLACE, *SIZE, Action.DELETE)
    ),
    Phase.FINISHING: PhaseRow(
        "all that there was is read, and its driver ends",
        DRIVER,
        (Action.START, *CHANGE, *END),
        limit_ms=120_000,
    ),  # sinks may wait a minute each when they are closed
    Phase.FINISHED: PhaseRow(
        "all that there was is read; later records wait",
        "a person, or its schedule",
        (Action.START, *CHANGE, *PLACE, *SIZE, *END),
    ),
    Phase.FAILED: PhaseRow(
        "it has failed, and is not started again by itself",
        PERSON,
        (Action.START, *CHANGE, *PLACE, *SIZE, *END),
    ),
    Phase.UNKNOWN: PhaseRow(
        "its runner is silent; what is asked for is done when it is back",
        RUNNER,
        (Action.START, *CHANGE, *PLACE, *SIZE, *HOLD, *END),
    ),
}


def allowed_actions(phase: str, desired: str, *, has_stopped: bool = False) -> tuple[Action, ...]:
    """Return the changes that can be made now. Only what is to be paused can be resumed. Where
    stages are stopped, a start is always possible: it starts these.
    """
    if desired == "deleted":
        return ()
    row = PHASES.get(phase, PHASES[Phase.UNKNOWN])
    without = Action.PAUSE if desired == "paused" else Action.RESUME
    allowed = tuple(action for action in row.allowed if action is not without)
    starts = has_stopped and Action.START not in allowed
    return (Action.START, *allowed) if starts else allowed


class Happening(StrEnum):
    """Why a pipeline moves to another phase."""

    START = "start"  # it is to run, and no driver lives
    QUEUE = "queue"  # its run waits for a driver
    ASSIGN = "assign"  # its run has a driver
    RUN = "run"  # its driver runs
    PAUSE = "pause"  # its driver runs, and begins no batch
    RESUME = "resume"  # its driver is about to begin batches again
    RESCALE = "rescale"  # its run is to have a driver of another size, and one lives
    RESTART = "restart"  # its run is to be followed by another one, and a driver lives
    DRAIN = "drain"  # it is to stop so, and a driver lives
    CHECKPOINT = "checkpoint"  # the same
    FORCE = "force"  # the same
    CLOSE = "close"  # sinks are to be removed, and no driver lives
    FINISH = "finish"  # its driver has read all that there was, and ends
    REST = "rest"  # it has read all that there was, or waits for a time, and no driver lives
    FALL_DUE = "fall_due"  # the time of its next run has come, and no driver lives
    END = "end"  # it is not to run, and no driver lives
    DELETE = "delete"  # all its sinks are closed
    RETRY = "retry"  # its driver has ended by itself, and is started again later
    FAIL = "fail"  # the same, and it is not started again; or its stages are stopped


class MoveAction(StrEnum):
    """What a move does, in the order of its row."""

    REPORT_PHASE = "report_phase"
    RECORD_PHASE = "record_phase"  # report it, and write the record at the same moment
    SEND_HEARTBEAT = "send_heartbeat"
    START_DRIVER = "start_driver"
    STOP_DRIVER = "stop_driver"
    WRITE_LAST_DEFINITION = "write_last_definition"
    ANSWER_DONE = "answer_done"  # if the pipeline is what its record wants
    ANSWER_FAILED = "answer_failed"


class Move(NamedTuple):
    sources: Set[Phase]
    happening: Happening
    target: Phase
    actions: tuple[MoveAction, ...]


WITH_DRIVER: Final = frozenset({Phase.SCHEDULING, Phase.STARTING, Phase.RUNNING, Phase.PAUSED})
RUN_FOLLOWS: Final = frozenset({Phase.RESCALING, Phase.RESTARTING})
"""The driver ends, and the next run begins."""
STOPS: Final = RUN_FOLLOWS | {Phase.DRAINING, Phase.CHECKPOINT_STOPPING, Phase.STOPPING}
BEFORE_CHECKPOINT: Final = RUN_FOLLOWS | {Phase.DRAINING}
"""Phases that a stop as `checkpoint` follows or overtakes."""
STOP_HAPPENINGS: Final[Mapping[StopMode, Happening]] = {
    StopMode.DRAIN: Happening.DRAIN,
    StopMode.CHECKPOINT: Happening.CHECKPOINT,
    StopMode.FORCE: Happening.FORCE,
}
WITHOUT_DRIVER: Final = STOPS | {
    Phase.CREATED,
    Phase.RECOVERING,
    Phase.STOPPED,
    Phase.FINISHED,
    Phase.FAILED,
}
"""In STOPS the driver may still live. It was ordered to end already: `stopping` orders it again if
it is to end in a stronger way, and then only."""
LIVING: Final = WITH_DRIVER | {Phase.FINISHING}
AT_WORK: Final = frozenset({Phase.STARTING, Phase.RUNNING, Phase.PAUSED})
RESTING: Final = STOPS | {Phase.CREATED, Phase.STOPPED, Phase.FINISHING, Phase.FINISHED}
REPORT: Final = MoveAction.REPORT_PHASE
ARRIVAL: Final = (REPORT, MoveAction.ANSWER_DONE)
ENDING: Final = (MoveAction.STOP_DRIVER, REPORT)
DUE: Final = (MoveAction.RECORD_PHASE, MoveAction.START_DRIVER)
DELETION: Final = (REPORT, MoveAction.WRITE_LAST_DEFINITION, MoveAction.ANSWER_DONE)
ROWS: Final = (
    Move(WITHOUT_DRIVER, Happening.START, Phase.STARTING, (REPORT, MoveAction.START_DRIVER)),
    Move({Phase.STARTING}, Happening.QUEUE, Phase.SCHEDULING, (REPORT,)),
    Move({Phase.SCHEDULING}, Happening.QUEUE, Phase.SCHEDULING, (MoveAction.SEND_HEARTBEAT,)),
    Move({Phase.SCHEDULING, Phase.STARTING}, Happening.ASSIGN, Phase.STARTING, (REPORT,)),
    Move({Phase.STARTING}, Happening.RUN, Phase.RUNNING, ARRIVAL),
    Move(AT_WORK, Happening.PAUSE, Phase.PAUSED, ARRIVAL),
    Move({Phase.PAUSED}, Happening.RESUME, Phase.STARTING, (REPORT,)),
    Move(WITH_DRIVER, Happening.RESCALE, Phase.RESCALING, ENDING),
    Move(LIVING, Happening.RESTART, Phase.RESTARTING, ENDING),
    Move(LIVING, Happening.DRAIN, Phase.DRAINING, ENDING),
    Move(LIVING, Happening.CHECKPOINT, Phase.CHECKPOINT_STOPPING, ENDING),
    Move(LIVING, Happening.FORCE, Phase.STOPPING, ENDING),
    Move(STOPS - {Phase.RESTARTING}, Happening.RESTART, Phase.RESTARTING, (REPORT,)),
    Move(BEFORE_CHECKPOINT, Happening.CHECKPOINT, Phase.CHECKPOINT_STOPPING, (REPORT,)),
    Move(STOPS - {Phase.STOPPING}, Happening.FORCE, Phase.STOPPING, (REPORT,)),
    Move(WITHOUT_DRIVER, Happening.CLOSE, Phase.STOPPING, (REPORT, MoveAction.START_DRIVER)),
    Move(WITHOUT_DRIVER, Happening.END, Phase.STOPPED, ARRIVAL),
    Move(AT_WORK, Happening.FINISH, Phase.FINISHING, (REPORT,)),
    Move(RESTING, Happening.REST, Phase.FINISHED, ARRIVAL),
    Move({Phase.FINISHED}, Happening.FALL_DUE, Phase.STARTING, DUE),
    Move({Phase.STOPPING}, Happening.DELETE, Phase.STOPPED, DELETION),
    Move(WITH_DRIVER, Happening.RETRY, Phase.RECOVERING, (REPORT,)),
    Move(
        LIVING | WITHOUT_DRIVER,
        Happening.FAIL,
        Phase.FAILED,
        (REPORT, MoveAction.ANSWER_FAILED),
    ),
)
STILL: Final[Mapping[Happening, Set[Phase]]] = {
    Happening.START: LIVING,
    Happening.QUEUE: WITHOUT_DRIVER | {Phase.RUNNING, Phase.PAUSED, Phase.FINISHING},
    Happening.ASSIGN: WITHOUT_DRIVER | {Phase.RUNNING, Phase.PAUSED, Phase.FINISHING},
    Happening.RUN: set(Phase) - {Phase.STARTING},
    Happening.PAUSE: WITHOUT_DRIVER | {Phase.SCHEDULING, Phase.FINISHING},
    Happening.RESUME: set(Phase) - {Phase.PAUSED},
    Happening.RESCALE: WITHOUT_DRIVER | {Phase.FINISHING},
    Happening.RESTART: WITHOUT_DRIVER - STOPS | {Phase.RESTARTING},
    Happening.DRAIN: WITHOUT_DRIVER,
    Happening.CHECKPOINT: WITHOUT_DRIVER - BEFORE_CHECKPOINT,
    Happening.FORCE: WITHOUT_DRIVER - STOPS | {Phase.STOPPING},
    Happening.CLOSE: LIVING,
    Happening.FINISH: set(Phase) - AT_WORK,
    Happening.REST: set(Phase) - RESTING,
    Happening.FALL_DUE: set(Phase) - {Phase.FINISHED},
    Happening.END: LIVING,
    Happening.DELETE: set(Phase) - {Phase.STOPPING},
    Happening.RETRY: WITHOUT_DRIVER | {Phase.FINISHING},
    Happening.FAIL: frozenset(),
}
"""The phases in which it does not happen, or comes too late and changes nothing."""
MOVES: Final[Mapping[tuple[Phase, Happening], Move]] = {
    (source, row.happening): row for row in ROWS for source in row.sources
}
"""All moves between phases. `supervision` of the stage runner decides what happens, and moves by
this table. A phase that stays is not reported. UNKNOWN is shown by readers when the runner is
silent, and never entered.
"""
HEARTBEAT_INTERVAL_MS = 2_000
HEARTBEAT_AGE_MS_MAX = 10_000  # five beats: one late beat is no alarm


def _check_tables() -> None:
    """Raise ValueError if a phase has no row, or one and a happening have none or two."""
    entered = set(Phase) - {Phase.UNKNOWN}
    if set(PHASES) != set(Phase):
        raise ValueError("each phase needs a row in PHASES")
    for happening in Happening:
        moves = [source for row in ROWS if row.happening is happening for source in row.sources]
        still = STILL[happening] & entered
        if sorted([*moves, *still]) != sorted(entered):
            raise ValueError(f"each phase needs one row for {happening}, in ROWS or in STILL")


_check_tables()
