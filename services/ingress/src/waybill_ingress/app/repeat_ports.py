"""What writes that may be repeated need of the world: a log of claims, and transactions."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from waybill_ingress.app.ports import Log
from waybill_ingress.core.requests import HeldKey, Place
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.requests import RequestAnswer, RequestClaim


class NotDone(Retryable):
    """Nobody knows whether a transaction was committed: the log will tell."""


class Aborted(NotDone):
    """Nothing of a transaction counts, and no other will come of its producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer of HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    replayed: bool = False


BEGUN: Final = HttpAnswer(status=0, headers={}, body=b"")
"""In place of the answer, as long as an operation is only begun."""


class Draws(Protocol):
    """The clock and the dice of this process."""

    def now_ms(self) -> int: ...

    def nonce(self) -> str:
        """What was never given before."""
        ...


class RequestLog(Protocol):
    """The log of claims and answers, and what is known of it. Each call may raise Retryable."""

    def held(self, who: str) -> HeldKey | None:
        """What was known of the key a moment ago."""
        ...

    async def known_soon(self, who: str, before: HeldKey) -> HeldKey | None:
        """Return what is known of the key as soon as the claim `before`, of another process, has an
        answer or has ended. If that takes longer than a moment, return what is known then."""
        ...

    def forgets_before(self) -> int:
        """Claims that are older are not known here."""
        ...

    async def claim(self, claim: RequestClaim) -> HeldKey | None:
        """Put it into the log; who has the key then."""
        ...

    async def settle(self, held: HeldKey) -> None:
        """Shut out who has claimed it; then all that it has ever answered is known here."""
        ...

    async def answer(self, held: HeldKey) -> RequestAnswer:
        """That of this claim, which has one."""
        ...

    def note(self, answer: RequestAnswer, place: Place) -> None:
        """It stands there, by what this process has heard of its own transaction."""
        ...


class Transaction(Protocol):
    """Of a producer that lives until one of its transactions is not committed."""

    @property
    def id(self) -> str: ...

    @property
    def over(self) -> bool:
        """One of its transactions was not committed."""
        ...

    async def carry_out(
        self, action: Callable[[Log], Awaitable[RequestAnswer]]
    ) -> tuple[RequestAnswer, Place]:
        """What it writes to the log that it is given counts with its answer, or not at all. Raises
        what `action` raises, and nothing counts; NotDone or Aborted, also for what another one of
        the same transaction has done."""
        ...


class Transactions(Protocol):
    async def next(self, *, apart: bool) -> Transaction:
        """One that is not over; `apart`: requests that may spoil it for others. Retryable."""
        ...
