"""A token that can be asked about, and what becomes of records and dead letters that were sent."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from waybill.models import IssuedTokenOf, ReceiptOf, ReplayedOf
from waybill.outcomes import Outcome
from waybill.tokens import AnyToken
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.aio.records import AsyncRecordCalls


class AsyncToken(str):
    """The text of a token, bound to the `AsyncClient` that it came from.

    It is a `str`: print it, store it, send it to others; `AsyncClient.token` binds a stored one
    again.
    """

    __slots__ = ("_client",)

    _client: "AsyncRecordCalls"

    def __new__(cls, text: str, client: "AsyncRecordCalls") -> "AsyncToken":
        token = super().__new__(cls, text)
        token._client = client
        return token

    async def outcome(self) -> Outcome:
        """What its status says now; raises as `AsyncClient.outcome`."""
        return await self._client.outcome(self)

    async def wait(self, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome; raises as `AsyncClient.wait`."""
        return await self._client.wait(self, timeout_s)

    def follow(self, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncIterator[Outcome]:
        """Every change up to the final outcome; raises as `AsyncClient.follow`."""
        return self._client.follow(self, timeout_s)

    async def merge(self, *others: AnyToken) -> "AsyncToken":
        """One token for all that this and the others cover; raises as `AsyncClient.merge`."""
        return await self._client.merge([self, *others])

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Copied and pickled it is its text: a client stays where it is."""
        return str, (str(self),)


class AsyncReceipt(ReceiptOf[AsyncToken]):
    """What became of one `AsyncClient.send`."""

    __slots__ = ()


class AsyncIssuedToken(IssuedTokenOf[AsyncToken]):
    """What `AsyncClient.token_for` makes."""

    __slots__ = ()


class AsyncReplayed(ReplayedOf[AsyncToken]):
    """What became of one `AsyncClient.replay`."""

    __slots__ = ()
