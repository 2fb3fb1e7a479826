"""Every error that crosses a module, split by who must act.

WaybillError
├── InvalidMessage     the sender's fault: set the message aside with its reason, go on
├── Retryable          the world's fault: pause, retry with backoff, lose nothing
├── UserError          what a person wrote is wrong: problems with place and hint, never retried
├── NotAllowed         who asks shows no API key, or none that may do this
├── TokenRefused       a token that this ring and tenant cannot open: one answer for all causes
└── TokenExpired       a token past its life
Anything else is our fault: crash and let the supervisor restart.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill_shared.contract.events import Problem


class WaybillError(Exception):
    """The root of what callers may catch."""


class InvalidMessage(WaybillError):
    """A message that its reader cannot take; the offset advances past it."""


class Retryable(WaybillError):
    """Kafka, Redis or a sink is away; the same work may succeed later."""


class UserError(WaybillError):
    """A manifest, a query or a request that must be changed by who wrote it."""

    def __init__(self, problems: Sequence["Problem"]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


class NotAllowed(WaybillError):
    """401 without a good key, 403 where a good one lacks the scope."""

    def __init__(self, status: int, slug: str, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.members = members


class TokenRefused(WaybillError):
    """Forged, truncated, of another tenant or of an unknown key: deliberately not told apart."""


class TokenExpired(WaybillError):
    """A genuine token past its life."""
