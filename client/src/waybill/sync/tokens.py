# Made by `python -m infra.client.render` from waybill/aio: change that.
"""A token that can be asked about, and what becomes of records and dead letters that were sent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from waybill.models import IssuedTokenOf, ReceiptOf, ReplayedOf
from waybill.outcomes import Outcome
from waybill.tokens import AnyToken
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.sync.records import RecordCalls


class Token(str):
    """The text of a token, bound to the `Client` that it came from.

    It is a `str`: print it, store it, send it to others; `Client.token` binds a stored one
    again.
    """

    __slots__ = ("_client",)

    _client: "RecordCalls"

    def __new__(cls, text: str, client: "RecordCalls") -> "Token":
        token = super().__new__(cls, text)
        token._client = client
        return token

    def outcome(self) -> Outcome:
        """What its status says now; raises as `Client.outcome`."""
        return self._client.outcome(self)

    def wait(self, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome; raises as `Client.wait`."""
        return self._client.wait(self, timeout_s)

    def follow(self, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Outcome]:
        """Every change up to the final outcome; raises as `Client.follow`."""
        return self._client.follow(self, timeout_s)

    def merge(self, *others: AnyToken) -> "Token":
        """One token for all that this and the others cover; raises as `Client.merge`."""
        return self._client.merge([self, *others])

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Copied and pickled it is its text: a client stays where it is."""
        return str, (str(self),)


class Receipt(ReceiptOf[Token]):
    """What became of one `Client.send`."""

    __slots__ = ()


class IssuedToken(IssuedTokenOf[Token]):
    """What `Client.token_for` makes."""

    __slots__ = ()


class Replayed(ReplayedOf[Token]):
    """What became of one `Client.replay`."""

    __slots__ = ()
