"""The exit codes of the command, and which error or outcome ends with which.

Never prints.
"""

from enum import IntEnum
from typing import assert_never

from waybill.errors import StillUnknown, WaitEnded, WaybillError
from waybill.outcomes import Outcome, OutcomeKind


class ExitCode(IntEnum):
    """The codes that a script can rely on; the command line parser itself ends with 2."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_ARRIVED = 3
    IN_PROGRESS = 4
    UNKNOWN = 5


SEVERITY = (
    ExitCode.ERROR,
    ExitCode.NOT_ARRIVED,
    ExitCode.UNKNOWN,
    ExitCode.IN_PROGRESS,
    ExitCode.OK,
)


def of_outcome(outcome: Outcome) -> ExitCode:
    match outcome.kind:
        case OutcomeKind.COMPLETE:
            return ExitCode.OK
        case OutcomeKind.DEAD_LETTERED | OutcomeKind.LOST:
            return ExitCode.NOT_ARRIVED
        case OutcomeKind.IN_PROGRESS:
            return ExitCode.IN_PROGRESS
        case OutcomeKind.UNKNOWN:
            return ExitCode.UNKNOWN
        case _:
            assert_never(outcome.kind)


def of_error(error: WaybillError) -> ExitCode:
    if isinstance(error, StillUnknown):
        return ExitCode.UNKNOWN
    if isinstance(error, WaitEnded):
        return ExitCode.IN_PROGRESS
    return ExitCode.ERROR


def worst(codes: list[ExitCode]) -> ExitCode:
    """Return the code that most needs somebody's attention."""
    return min(codes, key=SEVERITY.index, default=ExitCode.OK)
