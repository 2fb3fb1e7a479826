"""What repeatable writes need from outside: a log of claims, and transactions."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from waybill_ingress.app.ports import Log
from waybill_ingress.core.requests import OwnedKey, Place
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.requests import RequestAnswer, RequestClaim


class NotDone(Retryable):
    """It is not known whether a transaction was committed. The log will show it."""


class Aborted(NotDone):
    """Nothing of a transaction counts, and its producer makes no other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    replayed: bool = False


STARTED: Final = HttpAnswer(status=0, headers={}, body=b"")
"""In place of the answer, while an operation is only started."""


class Draws(Protocol):
    """The clock and the random numbers of this process."""

    def now_ms(self) -> int: ...

    def nonce(self) -> str:
        """Return a text that was never returned before."""


class RequestLog(Protocol):
    """The log of claims and answers, and what is known of it. Each call may raise Retryable."""

    def owner(self, who: str) -> OwnedKey | None:
        """Return what was known of the key a moment ago."""

    async def await_owner(self, who: str, before: OwnedKey) -> OwnedKey | None:
        """Wait a moment for the claim `before` of another process. Return what is known of the key
        then.

        It returns as soon as that claim has an answer or has ended.
        """

    def forgets_before(self) -> int:
        """Return the time before which claims are not known here."""

    async def claim(self, claim: RequestClaim) -> OwnedKey | None:
        """Write the claim to the log. Return the owner of the key after it."""

    async def settle(self, owned: OwnedKey) -> None:
        """Fence the owner of this claim. After that, all that it ever answered is known here."""

    async def answer(self, owned: OwnedKey) -> RequestAnswer:
        """Return the answer of this claim, which has one."""

    def note(self, answer: RequestAnswer, place: Place) -> None:
        """Note where the answer is, as reported by a transaction of this process."""


class Transaction(Protocol):
    """A transaction of a producer. The producer lives until one of its transactions is not
    committed.
    """

    @property
    def id(self) -> str: ...

    async def carry_out(
        self, action: Callable[[Log], Awaitable[RequestAnswer]]
    ) -> tuple[RequestAnswer, Place]:
        """Run `action` with a log. What it writes there counts with its answer, or not at all.

        Raises what `action` raises, and then nothing counts. Raises NotDone or Aborted, also
        because of another action in the same transaction.
        """


class Transactions(Protocol):
    async def next(self, *, apart: bool) -> Transaction:
        """Return a transaction that is not over. `apart`: for requests that may spoil it for
        others.

        Raises Retryable.
        """


@dataclass(slots=True, kw_only=True)
class OwnedClaim:
    """The claim of the owner of the key, and its transaction."""

    claim: RequestClaim
    transaction: Transaction
    keeps: bool = False
    """True if something is done that counts, or may: the key is not released without an answer."""
