"""Every error that crosses a module, split by who must act.

ContractError
├── InvalidMessage     the sender's fault: set the message aside with its reason, go on
├── Retryable          the world's fault: pause, retry with backoff, lose nothing
├── UserError          what a person wrote is wrong: problems with place and hint, never retried
└── Refusal            a request that is refused: its slug says who acts (`contract.problems`)
    ├── TokenRefused   a token that this ring and tenant cannot open: one answer for all causes
    └── TokenExpired   a token past its life
A package may add its own below `ContractError`, each next to what raises it.
Anything else is our fault: crash and let the supervisor restart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from waybill_shared.contract.problems import Slug
from waybill_shared.contract.token_life import TOKEN_LIFE

EXPIRED_HINT = "a new token for the pipeline's input covers all that it holds now"
UNKNOWN_HINT = "give all of it, to the Waybill that made it: it may be cut short or of another one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A fault, its location, and how to mend it."""

    message: str
    line: int | None = None
    column: int | None = None
    path: str = ""
    hint: str = ""


class ContractError(Exception):
    """The root of what callers may catch."""

    sink: str | None = None
    """In which sink of a stage it happened, where that is known."""


class InvalidMessage(ContractError):
    """A message that its reader cannot take; the offset advances past it."""


class Retryable(ContractError):
    """Kafka, Redis or a sink is away; the same work may succeed later."""


class UserError(ContractError):
    """A manifest, a query or a request that must be changed by who wrote it; `slug` says why."""

    def __init__(self, problems: Sequence[Problem], slug: Slug = Slug.INVALID) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)
        self.slug = slug

    def __reduce__(self) -> tuple[type["UserError"], tuple[tuple[Problem, ...], Slug]]:
        return UserError, (self.problems, self.slug)

    def without_places(self) -> "UserError":
        """Return this error without lines and columns, for a caller who did not write the text that
        they refer to.
        """
        return UserError([replace(p, line=None, column=None) for p in self.problems], self.slug)


class Refusal(ContractError):
    """The answer to a request that is not served, in no form yet: `detail` says how to mend it,
    `members` are what programs read."""

    def __init__(self, slug: Slug, detail: str, /, **members: object) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail
        self.members = members


def invalid(path: str, message: str, **hint: str) -> Refusal:
    """Return the refusal of a request for one of its fields, which `path` names."""
    errors = [{"message": message, "path": path, **hint}]
    return Refusal(Slug.INVALID, f"{path}: {message}", **hint, errors=errors)


class TokenRefused(Refusal):
    """A token that is forged, truncated, of another tenant or of an unknown key.

    The answer is the same for all, by intention.
    """

    def __init__(self) -> None:
        super().__init__(Slug.TOKEN_NOT_FOUND, "no such token", hint=UNKNOWN_HINT)


class TokenExpired(Refusal):
    """A genuine token past its life."""

    def __init__(self) -> None:
        detail = f"the token is older than {TOKEN_LIFE}"
        super().__init__(Slug.TOKEN_EXPIRED, detail, hint=EXPIRED_HINT)
