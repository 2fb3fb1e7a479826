"""A token that can be asked about, and the results of `send`, `token_for` and `replay`."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from waybill.models import IssuedTokenOf, ReceiptOf, ReplayedOf
from waybill.outcomes import Outcome
from waybill.tokens import AnyToken
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.aio.records import AsyncRecordCalls


class AsyncToken(str):
    """The text of a token, bound to the `AsyncClient` that made it.

    It is a `str`: print it, store it, send it to others. `AsyncClient.token` binds a stored one
    again.
    """

    __slots__ = ("_client",)

    _client: "AsyncRecordCalls"

    def __new__(cls, text: str, client: "AsyncRecordCalls") -> "AsyncToken":
        token = super().__new__(cls, text)
        token._client = client
        return token

    async def outcome(self) -> Outcome:
        """Return the outcome as it is now; raises as `AsyncClient.outcome`."""
        return await self._client.outcome(self)

    async def wait(self, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """Wait for the final outcome, and return it; raises as `AsyncClient.wait`."""
        return await self._client.wait(self, timeout_s)

    def follow(self, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncIterator[Outcome]:
        """Yield every change up to the final outcome; raises as `AsyncClient.follow`."""
        return self._client.follow(self, timeout_s)

    async def merge(self, *others: AnyToken) -> "AsyncToken":
        """Make one token for all that this and the others cover; raises as `AsyncClient.merge`."""
        return await self._client.merge([self, *others])

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Reduce a copy or a pickle to the text, because a client cannot be copied."""
        return str, (str(self),)


class AsyncReceipt(ReceiptOf[AsyncToken]):
    """The result of one `AsyncClient.send`."""

    __slots__ = ()


class AsyncIssuedToken(IssuedTokenOf[AsyncToken]):
    """The result of one `AsyncClient.token_for`."""

    __slots__ = ()


class AsyncReplayed(ReplayedOf[AsyncToken]):
    """The result of one `AsyncClient.replay`."""

    __slots__ = ()
