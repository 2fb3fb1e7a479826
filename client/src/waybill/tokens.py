"""Reads what answers about tokens mean. Never talks to anything."""

from urllib.parse import quote

from waybill.errors import ProblemError, StillInProgress, StillUnknown, WaybillError
from waybill.fields import Fields
from waybill.models import IssuedToken, Receipt
from waybill.outcomes import Outcome, OutcomeKind

Token = str | Receipt | IssuedToken


def token_path(token: Token) -> str:
    text = token if isinstance(token, str) else token.token
    if not text.strip():
        raise ValueError("the token is empty")
    return f"/v1/tokens/{quote(text.strip(), safe='')}"


def outcome_in(error: WaybillError) -> Outcome | None:
    """The outcome that a 503 carries when Waybill cannot judge the token now."""
    if isinstance(error, ProblemError) and "outcome" in error.members:
        fields = Fields(dict(error.members), "the outcome")
        return Outcome.read(fields, retry_after_s=error.retry_after_s)
    return None


def not_final(outcome: Outcome) -> StillInProgress | StillUnknown:
    """The error for a wait that ended with this outcome."""
    if outcome.kind is OutcomeKind.UNKNOWN:
        reason = f" ({outcome.reason})" if outcome.reason else ""
        told = f"nobody can judge the token now{reason}: ask again later"
        return StillUnknown(told, outcome=outcome)
    blocked = [f"{s.stage} ({s.blocked_by})" for s in outcome.stages if s.blocked_by]
    reason = f", held up at {', '.join(blocked)}" if blocked else ""
    return StillInProgress(f"the token is still in progress{reason}", outcome=outcome)
