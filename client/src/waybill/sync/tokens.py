# Made by `python -m infra.client.render` from waybill/aio: change that.
"""A token that can be asked about, and the results of `send`, `token_for` and `replay`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from waybill.models import IssuedTokenOf, ReceiptOf, ReplayedOf
from waybill.outcomes import Outcome
from waybill.tokens import AnyToken
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.sync.records import RecordCalls


class Token(str):
    """The text of a token, bound to the `Client` that made it.

    It is a `str`: print it, store it, send it to others. `Client.token` binds a stored one
    again.
    """

    __slots__ = ("_client",)

    _client: "RecordCalls"

    def __new__(cls, text: str, client: "RecordCalls") -> "Token":
        token = super().__new__(cls, text)
        token._client = client
        return token

    def outcome(self) -> Outcome:
        """Return the outcome as it is now; raises as `Client.outcome`."""
        return self._client.outcome(self)

    def wait(self, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """Wait for the final outcome, and return it; raises as `Client.wait`."""
        return self._client.wait(self, timeout_s)

    def follow(self, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Outcome]:
        """Yield every change up to the final outcome; raises as `Client.follow`."""
        return self._client.follow(self, timeout_s)

    def merge(self, *others: AnyToken) -> "Token":
        """Make one token for all that this and the others cover; raises as `Client.merge`."""
        return self._client.merge([self, *others])

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Reduce a copy or a pickle to the text, because a client cannot be copied."""
        return str, (str(self),)


class Receipt(ReceiptOf[Token]):
    """The result of one `Client.send`."""

    __slots__ = ()


class IssuedToken(IssuedTokenOf[Token]):
    """The result of one `Client.token_for`."""

    __slots__ = ()


class Replayed(ReplayedOf[Token]):
    """The result of one `Client.replay`."""

    __slots__ = ()
