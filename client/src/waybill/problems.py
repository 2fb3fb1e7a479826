"""Reads a problem document (RFC 9457) as the error that names who acts.

Reading one never raises: the result is None for what is no problem document.
"""

from collections.abc import Mapping

from waybill.errors import (
    MOMENTARY,
    Conflict,
    Expired,
    Invalid,
    NotAllowed,
    NotFound,
    NotReady,
    ProblemError,
    Renamed,
    TooLarge,
    UnexpectedAnswer,
)
from waybill.fields import Fields
from waybill.models import Fault, Operation, Rejected

KIND_BY_STATUS: Mapping[int, type[ProblemError]] = {
    400: Invalid,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    421: NotAllowed,
    422: Invalid,
    429: NotReady,
    502: NotReady,
    503: NotReady,
    504: NotReady,
}
KIND_BY_SLUG: Mapping[str, type[ProblemError]] = {
    **dict.fromkeys(MOMENTARY, NotReady),
    "renamed": Renamed,
}
OF_THE_PROBLEM = frozenset({"type", "title", "status", "detail", "request_id"})
GATEWAY_STATUSES = frozenset({502, 503, 504})  # a load balancer's page is HTML


def problem_from(
    status: int, headers: Mapping[str, str], body: Fields | None
) -> ProblemError | None:
    """Return the error for an answer that is no success; None when Waybill does not answer so."""
    kind = KIND_BY_STATUS.get(status, ProblemError)
    wait_s = retry_after_s(headers)
    if body is None:
        if status not in GATEWAY_STATUSES:
            return None
        title = f"the gateway got no answer from the service (HTTP {status})"
        return NotReady(status=status, type="about:blank", title=title, retry_after_s=wait_s)
    try:
        slug = body.text_or_none("type") or "about:blank"
        kind = KIND_BY_SLUG.get(slug.rpartition(":")[2], kind)
        return kind(
            status=status,
            type=slug,
            title=body.text_or_none("title") or f"HTTP {status}",
            detail=body.text_or_none("detail"),
            hint=body.text_or_none("hint"),
            errors=tuple(Fault.read(fault) for fault in body.objects("errors")),
            rejected=tuple(Rejected.read(row) for row in body.objects("rejected")),
            retry_after_s=wait_s,
            request_id=headers.get("X-Request-Id"),
            members=body.raw,
        )
    except UnexpectedAnswer:
        return None


def failure_in(error: ProblemError) -> Operation | None:
    """Return the operation that has failed; None if the change was refused before it was one."""
    members = {n: value for n, value in error.members.items() if n not in OF_THE_PROBLEM}
    if members.get("state") != "failed" or "action" not in members:
        return None
    return Operation.read(Fields(members, "the failed operation"))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds; None for its date form, which Waybill does not use."""
    try:
        return max(0.0, float(headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
