"""Phases of a pipeline and the moves between them: one table, which the runner walks and from which
the docs are drawn.
"""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Final, NamedTuple


class Phase(StrEnum):
    CREATED = "Created"
    SCHEDULING = "Scheduling"
    STARTING = "Starting"
    RUNNING = "Running"
    RECOVERING = "Recovering"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Happening(StrEnum):
    """Why a pipeline moves to another phase."""

    START = "start"  # it is to run, and no driver lives
    QUEUE = "queue"  # its run waits for a driver
    ASSIGN = "assign"  # its run has a driver
    RUN = "run"  # its driver runs
    STOP = "stop"  # it is to stop, or to run otherwise, and a driver lives
    CLOSE = "close"  # sinks are to be removed, and no driver lives
    END = "end"  # it is not to run, and no driver lives
    DELETE = "delete"  # all its sinks are closed
    RETRY = "retry"  # its driver has ended by itself, and is started again later
    FAIL = "fail"  # the same, and it is not started again


class MoveAction(StrEnum):
    """What a move does, in the order of its row."""

    REPORT_PHASE = "report_phase"
    SEND_HEARTBEAT = "send_heartbeat"
    START_DRIVER = "start_driver"
    STOP_DRIVER = "stop_driver"
    WRITE_LAST_DEFINITION = "write_last_definition"
    ANSWER_DONE = "answer_done"
    ANSWER_FAILED = "answer_failed"


class Move(NamedTuple):
    sources: Set[Phase]
    happening: Happening
    target: Phase
    actions: tuple[MoveAction, ...]


WITH_DRIVER: Final = frozenset({Phase.SCHEDULING, Phase.STARTING, Phase.RUNNING})
WITHOUT_DRIVER: Final = frozenset(
    {Phase.CREATED, Phase.RECOVERING, Phase.STOPPING, Phase.STOPPED, Phase.FAILED}
)
"""In STOPPING the driver may still live: then nothing moves before it has ended."""
REPORT: Final = MoveAction.REPORT_PHASE
DELETION: Final = (REPORT, MoveAction.WRITE_LAST_DEFINITION, MoveAction.ANSWER_DONE)
ROWS: Final = (
    Move(WITHOUT_DRIVER, Happening.START, Phase.STARTING, (REPORT, MoveAction.START_DRIVER)),
    Move({Phase.STARTING}, Happening.QUEUE, Phase.SCHEDULING, (REPORT,)),
    Move({Phase.SCHEDULING}, Happening.QUEUE, Phase.SCHEDULING, (MoveAction.SEND_HEARTBEAT,)),
    Move({Phase.SCHEDULING, Phase.STARTING}, Happening.ASSIGN, Phase.STARTING, (REPORT,)),
    Move({Phase.STARTING}, Happening.RUN, Phase.RUNNING, (REPORT, MoveAction.ANSWER_DONE)),
    Move(WITH_DRIVER, Happening.STOP, Phase.STOPPING, (MoveAction.STOP_DRIVER, REPORT)),
    Move(WITHOUT_DRIVER, Happening.CLOSE, Phase.STOPPING, (REPORT, MoveAction.START_DRIVER)),
    Move(WITHOUT_DRIVER, Happening.END, Phase.STOPPED, (REPORT, MoveAction.ANSWER_DONE)),
    Move({Phase.STOPPING}, Happening.DELETE, Phase.STOPPED, DELETION),
    Move(WITH_DRIVER, Happening.RETRY, Phase.RECOVERING, (REPORT,)),
    Move(WITH_DRIVER, Happening.FAIL, Phase.FAILED, (REPORT, MoveAction.ANSWER_FAILED)),
)
MOVES: Final[Mapping[tuple[Phase, Happening], Move]] = {
    (source, row.happening): row for row in ROWS for source in row.sources
}
"""All moves between phases. `supervision` of the stage runner decides what happens, and moves by
this table. A phase that stays is not reported. UNKNOWN is shown by readers when the runner is
silent, and never entered.
"""
HEARTBEAT_INTERVAL_MS = 2_000
HEARTBEAT_AGE_MS_MAX = 10_000  # five beats: one late beat is no alarm
