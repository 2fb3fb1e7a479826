"""Sends signed events to webhooks. Implements `Receivers`.

A name is looked up once and its addresses are checked; the connection goes to one of these very
addresses. No redirect is followed, and no proxy is used.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import httpcore2

from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.sealing import KeyRing, NotOpened
from waybill_shared.contract.status_events import MEDIA_TYPE
from waybill_shared.contract.version import VERSION
from waybill_shared.contract.webhooks import (
    WebhookRules,
    WebhookTarget,
    open_secret,
    read_target,
    sign_headers,
)
from waybill_shared.http.names import HostNames
from waybill_status.core.watches.deliveries import GONE, Answered

SILENCE_S: Final = 10.0  # of a server that was reached
CONNECT_S: Final = 4.0  # to one address
ATTEMPT_S: Final = 30.0  # for all of one attempt
READ_S: Final = 5.0  # then the status alone counts, without the body
ANSWER_BYTES_MAX: Final = 65_536
RETRY_AFTER_S_MAX: Final = 24 * 3600
DIGITS_MAX: Final = 6
TIMEOUTS: Final = {
    "timeout": {"connect": SILENCE_S, "read": SILENCE_S, "write": SILENCE_S, "pool": SILENCE_S}
}
MOVED: Final = range(300, 400)


class Webhooks:
    def __init__(
        self, ring: KeyRing, rules: WebhookRules, names: HostNames, tls: ssl.SSLContext
    ) -> None:
        self._ring = ring
        self._rules = rules
        self._names = names
        self._tls = tls

    async def send(self, delivery: WebhookDelivery, event: str, now_s: int) -> Answered:
        try:
            secret = open_secret(delivery.webhook.secret, self._ring, watch=delivery.watch)
            target = read_target(delivery.webhook.url)
            addresses = await self._names.find(target.host, target.port)
        except NotOpened:
            return Answered(error="its secret was sealed with a key that this status does not have")
        except (OSError, ValueError) as error:
            return Answered(error=_describe(error))
        refusal = self._rules.refusal(target, addresses)
        if refusal is not None:
            return Answered(error=refusal)
        body = event.encode()
        headers = {
            "host": target.authority,
            "content-type": MEDIA_TYPE,
            "user-agent": f"waybill/{VERSION}",
            **sign_headers(secret, id=delivery.event_id, now_s=now_s, body=body),
        }
        turn = delivery.attempts % len(addresses)  # each may be the one that answers
        place = _Place(target, (*addresses[turn:], *addresses[:turn]))
        return await self._ask(place, headers, body, now_s)

    async def _ask(
        self, place: "_Place", headers: Mapping[str, str], body: bytes, now_s: int
    ) -> Answered:
        said: list[Answered] = []
        try:
            async with asyncio.timeout(ATTEMPT_S):
                await self._post(place, headers, body, hear=lambda a: said.append(_read(a, now_s)))
        except TimeoutError:
            error = f"no answer in {ATTEMPT_S:.0f} s"
        except httpcore2.ProtocolError as fault:
            error = f"no answer in HTTP: {_describe(fault)}"
        except (OSError, httpcore2.TimeoutException, httpcore2.NetworkError) as fault:
            error = _describe(fault)
        # A status that has arrived counts, whatever happens afterwards.
        return said[0] if said else Answered(error=error, silent=True)

    async def _post(
        self,
        place: "_Place",
        headers: Mapping[str, str],
        body: bytes,
        *,
        hear: Callable[[httpcore2.Response], None],
    ) -> None:
        target, addresses = place
        url = httpcore2.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=target.path
        )
        async with (
            httpcore2.AsyncConnectionPool(
                ssl_context=self._tls,
                max_keepalive_connections=0,
                network_backend=_Pinned(addresses),
            ) as pool,
            pool.stream(
                "POST", url, headers=[*headers.items()], content=body, extensions=TIMEOUTS
            ) as answer,
        ):
            hear(answer)
            async with asyncio.timeout(READ_S):
                await _pass_over(answer)


class _Place(NamedTuple):
    target: WebhookTarget
    addresses: Sequence[str]


class _Pinned(httpcore2.AsyncNetworkBackend):
    """A network that connects to the first of these addresses that answers, whatever the host
    name."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        last: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in self._addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, CONNECT_S, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        raise last


async def _pass_over(answer: httpcore2.Response) -> None:
    """Read the body and ignore it, because some servers dislike a connection that is cut at
    once."""
    size = 0
    async for piece in answer.aiter_stream():
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            return


def _read(answer: httpcore2.Response, now_s: int) -> Answered:
    status = answer.status
    if 200 <= status < 300:
        return Answered(status=status)
    if status == GONE:
        return Answered(status=status, error="it answered 410: it wants no more")
    asked_ms = _retry_after(answer.headers, now_s)
    moved = ", and redirects are not followed" if status in MOVED else ""
    return Answered(status=status, retry_after_ms=asked_ms, error=f"it answered {status}{moved}")


def _retry_after(headers: Sequence[tuple[bytes, bytes]], now_s: int) -> int:
    """Return the requested pause in milliseconds."""
    asked = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    text = asked.decode("ascii", "replace").strip()
    seconds = 0
    if text.isdecimal() and len(text) <= DIGITS_MAX:
        seconds = int(text)
    elif text:
        with suppress(ValueError, OverflowError):
            seconds = int(parsedate_to_datetime(text).timestamp()) - now_s
    return 1000 * min(max(0, seconds), RETRY_AFTER_S_MAX)


def _describe(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
