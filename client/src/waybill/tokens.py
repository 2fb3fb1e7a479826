"""A token: its text, which may be printed, stored and passed on, and the client that asks about it.

Never asks by itself.
"""

import re
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Protocol

from waybill.errors import Unusable
from waybill.outcomes import Outcome
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.async_client import AsyncClient
    from waybill.client import Client

TOKEN = re.compile(r"wb\d+\.[\w-]+", re.ASCII)  # of a later version too
FORM = "a token is wb1. and then only letters, digits, - and _"


class HoldsToken(Protocol):
    """A Receipt, an IssuedToken, or whatever else has a token."""

    @property
    def token(self) -> str: ...


AnyToken = str | HoldsToken


class Token(str):
    """The text of a token, bound to the `Client` that it came from.

    It is a `str`: print it, store it, send it to others; `Client.token` binds a stored one again.
    """

    __slots__ = ("_client",)

    _client: "Client"

    def __new__(cls, text: str, client: "Client") -> "Token":
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


class AsyncToken(str):
    """The text of a token, bound to the `AsyncClient` that it came from: as `Token`, awaited."""

    __slots__ = ("_client",)

    _client: "AsyncClient"

    def __new__(cls, text: str, client: "AsyncClient") -> "AsyncToken":
        token = super().__new__(cls, text)
        token._client = client
        return token

    async def outcome(self) -> Outcome:
        """What its status says now; raises as `Client.outcome`."""
        return await self._client.outcome(self)

    async def wait(self, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome; raises as `Client.wait`."""
        return await self._client.wait(self, timeout_s)

    def follow(self, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncIterator[Outcome]:
        """Every change up to the final outcome; raises as `Client.follow`."""
        return self._client.follow(self, timeout_s)

    async def merge(self, *others: AnyToken) -> "AsyncToken":
        """One token for all that this and the others cover; raises as `Client.merge`."""
        return await self._client.merge([self, *others])

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Copied and pickled it is its text: a client stays where it is."""
        return str, (str(self),)


def text_of(token: AnyToken, name: str = "the token") -> str:
    """The token as plain text, without the white space that a file or a pipe may add.

    Unusable: it cannot be a token of any Waybill. Only Waybill knows whether it is one of its own.
    """
    held = token if isinstance(token, str) else getattr(token, "token", token)
    if not isinstance(held, str):
        raise Unusable(f"{name} is of type {type(held).__qualname__}: {FORM}")
    text = str(held).strip()
    if not text:
        raise Unusable(f"{name} is empty: {FORM}")
    if not TOKEN.fullmatch(text):
        raise Unusable(f"{name} {_flaw(text)}: {FORM}")
    return text


def _flaw(text: str) -> str:
    begin = TOKEN.match(text)
    if begin is None:
        return f"begins with {text[:12]!r}"
    return f"has {text[begin.end()]!r} as character {begin.end() + 1}"
