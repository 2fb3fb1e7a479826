"""Sends events to webhooks, signed. Fulfils `Receivers`.

A name is looked up once and its addresses are checked; one of those very addresses is connected to.
No redirect is followed, and no proxy is used.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
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
    signed_headers,
)
from waybill_shared.http.names import HostNames
from waybill_status.core.deliveries import GONE, Answered

SILENCE_S: Final = 10.0  # of a name, a connection, and each piece of an answer
ATTEMPT_S: Final = 30.0  # whatever comes
READ_S: Final = 5.0  # then what was said before the body counts
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

    async def send(self, delivery: WebhookDelivery, now_s: int) -> Answered:
        try:
            async with asyncio.timeout(ATTEMPT_S):
                return await self._send(delivery, now_s)
        except TimeoutError:
            return Answered(error=f"no whole answer in {ATTEMPT_S:.0f} s")
        except NotOpened:
            return Answered(error="its secret was sealed with a key that this status does not have")
        except (OSError, ValueError) as error:
            return Answered(error=_said(error))
        except (httpcore2.TimeoutException, httpcore2.NetworkError) as error:
            return Answered(error=_said(error))
        except httpcore2.ProtocolError as error:
            return Answered(error=f"no answer in HTTP: {_said(error)}")

    async def _send(self, delivery: WebhookDelivery, now_s: int) -> Answered:
        secret = open_secret(delivery.webhook.secret, self._ring, watch=delivery.watch)
        target = read_target(delivery.webhook.url)
        addresses = await self._names.find(target.host, target.port)
        refusal = self._rules.refusal(target, addresses)
        if refusal is not None:
            return Answered(error=refusal)
        body = delivery.event.encode()
        headers = {
            "content-type": MEDIA_TYPE,
            "user-agent": f"waybill/{VERSION}",
            **signed_headers(secret, id=delivery.event_id, now_s=now_s, body=body),
        }
        return await self._post(_Place(target, addresses), headers, body, now_s)

    async def _post(
        self, place: "_Place", headers: Mapping[str, str], body: bytes, now_s: int
    ) -> Answered:
        target = place.target
        url = httpcore2.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=target.path
        )
        network = _Pinned(place.addresses)
        async with (
            httpcore2.AsyncConnectionPool(
                ssl_context=self._tls, max_keepalive_connections=0, network_backend=network
            ) as pool,
            pool.stream(
                "POST", url, headers=[*headers.items()], content=body, extensions=TIMEOUTS
            ) as answer,
        ):
            said = _answered(answer, now_s)
            with suppress(TimeoutError, httpcore2.TimeoutException, httpcore2.NetworkError):
                async with asyncio.timeout(READ_S):
                    await _read(answer)
            return said


class _Place(NamedTuple):
    target: WebhookTarget
    addresses: Sequence[str]


class _Pinned(httpcore2.AsyncNetworkBackend):
    """Connects to the first of these addresses that answers, whatever the host is called."""

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
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        raise last


async def _read(answer: httpcore2.Response) -> None:
    """What it says is of no use, but some would take it amiss to be cut off at once."""
    size = 0
    async for piece in answer.aiter_stream():
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            return


def _answered(answer: httpcore2.Response, now_s: int) -> Answered:
    status = answer.status
    asked = _retry_after(answer.headers, now_s)
    if 200 <= status < 300:
        return Answered(status=status)
    if status == GONE:
        return Answered(status=status, error="it answered 410: it wants no more")
    moved = ", and redirects are not followed" if status in MOVED else ""
    return Answered(status=status, retry_after_ms=asked, error=f"it answered {status}{moved}")


def _retry_after(headers: Sequence[tuple[bytes, bytes]], now_s: int) -> int:
    """In milliseconds."""
    asked = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    text = asked.decode("ascii", "replace").strip()
    seconds = 0
    if text.isdecimal() and len(text) <= DIGITS_MAX:
        seconds = int(text)
    elif text:
        with suppress(ValueError):
            seconds = int(parsedate_to_datetime(text).timestamp()) - now_s
    return 1000 * min(max(0, seconds), RETRY_AFTER_S_MAX)


def _said(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
