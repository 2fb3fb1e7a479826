"""What can go wrong, split by who acts.

WaybillError
├── Unusable               what the caller gave is no record, token or name: nothing was sent
├── Unreachable            nothing answers at the URL: start it, or correct the URL
│   └── NoAnswer           there is a connection, the answer did not come in time
├── UnexpectedAnswer       what answers is not Waybill, or is of another version
├── ProblemError           Waybill answered with a problem (RFC 9457)
│   ├── Invalid            400, 422: the request is wrong; `errors` and `rejected` say where
│   ├── NotAllowed         401, 403, 421: no API key, or one that may not do this
│   ├── NotFound           404: no such pipeline, input, operation, dead letter, or token of ours
│   ├── Conflict           409: not allowed in the present state
│   ├── Expired            410: the token is too old, or retention deleted the dead letter
│   ├── Renamed            410: the pipeline is called otherwise now
│   ├── TooLarge           413: send less at once
│   └── NotReady           429, 502, 503, 504: try again after `retry_after_s`
├── KafkaAway              the Kafka of a tracked producer does not answer
├── NotDelivered           a tracked producer did not deliver its records; `failed` says which
├── PipelineFailed         a pipeline waited for is Failed: `pipeline.error` says why
├── PhaseOutOfReach        the `pipeline` rests: it gets into the phase only if somebody acts
└── WaitEnded              the time given to a wait is over
    ├── StillInProgress    the token's `outcome` is not final yet
    ├── StillUnknown       nobody can judge the token now; `outcome` is unknown
    ├── StillUndelivered   a tracked producer has no acknowledgement of all its records yet
    └── PhaseNotReached    the `pipeline` is in another phase
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

MOMENTARY = frozenset(
    {
        "pipeline_not_ready",
        "input_not_ready",
        "pipeline_behind",
        "too_many_checks",
        "request_running",
    }
)

FOR_PEOPLE = frozenset({"topic_recreated", "command_given_up"})

if TYPE_CHECKING:
    from waybill.models import FailedRecord, Fault, Rejected
    from waybill.outcomes import Outcome
    from waybill.pipelines import Pipeline


class WaybillError(Exception):
    """The base of all errors that this SDK raises on purpose."""


class Unusable(WaybillError, ValueError):
    """A value that cannot be sent, so nothing was sent."""


class Unreachable(WaybillError):
    """No answer at `url`; `sent`: the request may have reached a server there."""

    def __init__(self, message: str, *, url: str, sent: bool = True) -> None:
        super().__init__(message)
        self.url = url
        self.sent = sent


class NoAnswer(Unreachable):
    """A connection on which the answer did not come in time."""


class UnexpectedAnswer(WaybillError):
    """An answer that Waybill does not give: it is another program, or another version."""


class ProblemError(WaybillError):
    """A problem document; `members` has all of it, also what its type adds.

    As text it has the first reason with its location, how many more there are, and the hint.
    """

    def __init__(
        self,
        *,
        status: int,
        type: str,
        title: str,
        detail: str | None = None,
        hint: str | None = None,
        errors: "tuple[Fault, ...]" = (),
        rejected: "tuple[Rejected, ...]" = (),
        retry_after_s: float | None = None,
        request_id: str | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(_message(detail or title, errors, rejected, hint))
        self.status = status
        self.type = type
        self.title = title
        self.detail = detail
        self.hint = hint
        self.errors = errors
        self.rejected = rejected
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.members: Mapping[str, object] = members or {}

    @property
    def slug(self) -> str:
        """The last word of its type, which never changes."""
        return self.type.rpartition(":")[2]


class Invalid(ProblemError):
    """A request that is wrong and stays wrong."""


class NotAllowed(ProblemError):
    """A refusal of the API key, or of the host name.

    There is no key, it is not known or not valid any more, or it may not do this. Where there are
    no keys, Waybill does not answer to this host name.
    """


class NotFound(ProblemError):
    """No such thing, or a token of another Waybill: forged, foreign and truncated look the same."""


class Conflict(ProblemError):
    """A request that is not allowed in the present state."""


class Expired(ProblemError):
    """A token older than tokens live, or a dead letter that retention has deleted."""


class Renamed(ProblemError):
    """A pipeline is called otherwise now: `renamed_to`."""

    @property
    def renamed_to(self) -> str | None:
        """Its present name."""
        name = self.members.get("renamed_to")
        return name if isinstance(name, str) else None


class TooLarge(ProblemError):
    """A request over a limit."""


class NotReady(ProblemError):
    """A refusal for now: the same request may succeed later."""

    @property
    def momentary(self) -> bool:
        """True if nothing was done, and a retry in a moment will work.

        Either a change is not known everywhere yet, or other requests come first.
        """
        return self.slug in MOMENTARY

    @property
    def for_people(self) -> bool:
        """True if it stays so until somebody does something."""
        return self.slug in FOR_PEOPLE


class KafkaAway(WaybillError):
    """The Kafka of a tracked producer, which does not answer."""


class NotDelivered(WaybillError):
    """Records of a tracked producer that no token can cover."""

    def __init__(self, *, failed: "tuple[FailedRecord, ...]") -> None:
        super().__init__(
            f"there is no token, for {_first(failed)}: produce what `take_failed` gives again,"
            " then ask for the token"
        )
        self.failed = failed


class PipelineFailed(WaybillError):
    """A pipeline that was waited for is Failed."""

    def __init__(self, message: str, *, pipeline: "Pipeline") -> None:
        super().__init__(message)
        self.pipeline = pipeline


class WaitEnded(WaybillError):
    """The end of the time given to a wait."""


class StillInProgress(WaitEnded):
    """A token that is not final when the wait ends."""

    def __init__(self, message: str, *, outcome: "Outcome") -> None:
        super().__init__(message)
        self.outcome = outcome


class StillUnknown(WaitEnded):
    """A token that nobody can judge when the wait ends."""

    def __init__(self, message: str, *, outcome: "Outcome") -> None:
        super().__init__(message)
        self.outcome = outcome


class StillUndelivered(WaitEnded):
    """A tracked producer without an acknowledgement of so many of its records yet."""

    def __init__(self, *, outstanding: int, timeout_s: float) -> None:
        super().__init__(
            f"{outstanding} of the tracked records were not acknowledged within {timeout_s:g} s:"
            " ask for the token again"
        )
        self.outstanding = outstanding


class PhaseOutOfReach(WaybillError):
    """A pipeline that rests in another phase. `hint` is the command with which it goes on."""

    def __init__(self, message: str, *, pipeline: "Pipeline", hint: str) -> None:
        super().__init__(f"{message}: {hint}")
        self.pipeline = pipeline
        self.hint = hint


class PhaseNotReached(WaitEnded):
    """A pipeline that is in another phase when the wait ends."""

    def __init__(self, message: str, *, pipeline: "Pipeline") -> None:
        super().__init__(message)
        self.pipeline = pipeline


def _message(
    said: str, errors: "Sequence[Fault]", rejected: "Sequence[Rejected]", hint: str | None
) -> str:
    """Return the text of a problem; `said` may repeat the reasons without their locations."""
    if errors:
        said = _first(errors) if errors[0].message in said else f"{said}: {_first(errors)}"
    elif rejected and rejected[0].reason not in said:
        said = f"{said}: {_first(rejected)}"
    return f"{said} ({hint})" if hint else said


def _first(reasons: Sequence[object]) -> str:
    return f"{reasons[0]}, and {len(reasons) - 1} more" if len(reasons) > 1 else f"{reasons[0]}"
