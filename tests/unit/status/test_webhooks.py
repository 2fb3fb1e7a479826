"""What a webhook is sent, and what counts as its answer: on real connections."""

import asyncio
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, socket

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from standardwebhooks import Webhook as Independent

from certificates import Authority, write
from unit.status.coroutines import in_a_loop
from unit.status.hooks import LOOPBACK, NOTHING, SECRET, Names, Server, send
from unit.status.slots import RING
from watch_builders import make_delivery
from waybill_shared.contract.webhooks import Webhook, write_secret
from waybill_shared.http import names
from waybill_shared.http.names import HostNames
from waybill_status.adapters import webhooks
from waybill_status.adapters.webhooks import Webhooks
from waybill_status.core.watches.deliveries import Answered

ODD = b"Mon, 01 Jan 2024 00:00:00 +99999999999999"


@in_a_loop
async def test_it_is_sent_signed_as_standard_webhooks_have_it() -> None:
    async with Server() as server:
        answer = await send(f"http://127.0.0.1:{server.port}/a/b?key=1&c=%20")
        line, headers, body = server.request()
    assert answer == Answered(status=204)
    assert line == "POST /a/b?key=1&c=%20 HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert headers["content-type"] == "application/cloudevents+json"
    assert headers["webhook-id"] == "e.final"
    event = Independent(write_secret(SECRET)).verify(body, headers)
    assert event["type"] == "waybill.token.final"
    assert body == make_delivery().event


@pytest.mark.parametrize(
    ("says", "status", "error", "retry_after_s"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "", 0),
        (b"HTTP/1.1 500 Oh\r\n\r\n", 500, "it answered 500", 0),
        (b"HTTP/1.1 503 No\r\nRetry-After: 120\r\n\r\n", 503, "it answered 503", 120),
        (b"HTTP/1.1 429 No\r\nretry-after: 999999999\r\n\r\n", 429, "it answered 429", 0),
        (b"HTTP/1.1 429 No\r\nRetry-After: soon\r\n\r\n", 429, "it answered 429", 0),
        (b"HTTP/1.1 429 No\r\nRetry-After: 999999\r\n\r\n", 429, "it answered 429", 86_400),
        (
            b"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n\r\n",
            503,
            "it answered 503",
            86_400,
        ),
        (b"HTTP/1.1 503 No\r\nRetry-After: " + ODD + b"\r\n\r\n", 503, "it answered 503", 0),
        (b"HTTP/1.1 204 OK\r\nRetry-After: " + ODD + b"\r\n\r\n", 204, "", 0),
        (b"HTTP/1.1 410 Gone\r\n\r\n", 410, "it answered 410: it wants no more", 0),
        (b"HTTP/1.1 304 Same\r\n\r\n", 304, "redirects are not followed", 0),
    ],
)
@in_a_loop
async def test_the_status_of_an_answer_counts(
    says: bytes, status: int, error: str, retry_after_s: int
) -> None:
    async with Server(says) as server:
        answer = await send(f"http://127.0.0.1:{server.port}/")
    assert (answer.status, answer.retry_after_ms) == (status, 1000 * retry_after_s)
    assert error in answer.error
    assert bool(answer.error) is bool(error)


@in_a_loop
async def test_no_redirect_is_followed() -> None:
    async with Server() as target:
        place = f"http://127.0.0.1:{target.port}/latest/meta-data".encode()
        says = b"HTTP/1.1 307 Go\r\nLocation: " + place + b"\r\n\r\n"
        async with Server(says) as server:
            answer = await send(f"http://127.0.0.1:{server.port}/")
        assert (answer.status, target.connections) == (307, 0)


async def _hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


async def _reset(writer: asyncio.StreamWriter) -> None:
    own = writer.get_extra_info("socket")
    with socket(fileno=own.fileno()) as plain:
        plain.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        plain.detach()
    writer.transport.abort()


async def _drip(writer: asyncio.StreamWriter) -> None:
    for each in b"HTTP/1.1 200 OK\r\n" + b"a" * 100:
        writer.write(bytes([each]))
        await asyncio.sleep(0.05)


async def _reset_after(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(0.1)
    await _reset(writer)


async def _end(writer: asyncio.StreamWriter) -> None:
    """Says nothing."""


async def _noise(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x15\x03\x01\x00\x02\x02\x28 what?\r\n\r\n")


@pytest.mark.parametrize("act", [_hang, _reset, _drip, _end, _noise])
@in_a_loop
async def test_whatever_is_no_answer_is_none(
    act: Callable[[asyncio.StreamWriter], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "ATTEMPT_S", 1.0)
    monkeypatch.setitem(webhooks.TIMEOUTS["timeout"], "read", 0.3)
    async with Server(act) as server:
        answer = await send(f"http://127.0.0.1:{server.port}/")
    assert (answer.status, answer.silent) == (None, True)
    assert answer.error


@in_a_loop
async def test_nobody_there_is_no_answer() -> None:
    async with Server() as server:
        port = server.port
    answer = await send(f"http://127.0.0.1:{port}/")
    assert (answer.status, bool(answer.error)) == (None, True)
    unknown = await send("https://nobody.invalid/")
    assert unknown == Answered(error="nobody.invalid is not found")


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    for _ in range(100):
        writer.write(b"x" * 65_536)
        await writer.drain()
    raise AssertionError("all of it was read")


async def _slow_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    await asyncio.sleep(5)


async def _short_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")


async def _bad_chunk(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")


@pytest.mark.parametrize("act", [_endless, _slow_body, _short_body, _bad_chunk, _reset_after])
@in_a_loop
async def test_of_what_follows_an_answer_little_is_read(
    act: Callable[[asyncio.StreamWriter], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "READ_S", 0.3)
    async with Server(act) as server:
        assert await send(f"http://127.0.0.1:{server.port}/") == Answered(status=200)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "0177.0.0.1"],
)
@in_a_loop
async def test_nothing_connects_to_what_is_not_public_however_it_is_written(host: str) -> None:
    async with Server() as server:
        answer = await send(f"https://{host}:{server.port}/", NOTHING)
        await asyncio.sleep(0)
        assert (answer.status, server.connections) == (None, 0)
    assert "is not at a public address" in answer.error


@in_a_loop
async def test_a_name_is_looked_up_once_and_that_address_is_connected_to() -> None:
    async with Server() as server:
        two = Names("127.0.0.1", "10.0.0.1")
        answer = await send(f"http://hooks.test:{server.port}/", LOOPBACK, two)
        assert (answer.status, two.looks) == (204, ["10.0.0.1"])
        assert server.request()[1]["host"] == f"hooks.test:{server.port}"
        refused = await send(f"http://hooks.test:{server.port}/", NOTHING, Names("127.0.0.1"))
        assert (refused.status, refused.silent, server.connections) == (None, False, 1)


@in_a_loop
async def test_an_address_in_a_url_is_named_as_http_has_it() -> None:
    async with Server(host="::1") as server:
        assert await send(f"http://[::1]:{server.port}/") == Answered(status=204)
        assert server.request()[1]["host"] == f"[::1]:{server.port}"


@in_a_loop
async def test_names_that_take_long_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ending = threading.Semaphore(0), threading.Event()

    def slow(host: str, port: int) -> tuple[str, ...]:
        if host == "slow.example":
            begun.release()
            ending.wait(10)
        return ("127.0.0.1",)

    monkeypatch.setattr(names, "_look_up", slow)
    found = HostNames()

    async def keep_a_thread() -> None:
        looking = asyncio.create_task(found.find("slow.example", 443))
        await asyncio.to_thread(begun.acquire)  # one that has not begun is not looked up at all
        looking.cancel()

    for _ in range(names.AT_ONCE - 1):
        await keep_a_thread()
    assert await found.find("fast.example", 443) == ("127.0.0.1",)
    await keep_a_thread()
    with pytest.raises(OSError, match="50 other names take too long"):
        await found.find("fast.example", 443)
    ending.set()
    async with asyncio.timeout(10):
        while True:
            try:
                assert await found.find("fast.example", 443) == ("127.0.0.1",)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                return


@in_a_loop
async def test_a_name_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = threading.Event()
    monkeypatch.setattr(names, "_look_up", lambda host, port: ending.wait(10))
    with pytest.raises(OSError, match=r"slow.example is not found in 0 s"):
        await HostNames().find("slow.example", 443, 0.001)
    ending.set()


@in_a_loop
async def test_over_tls_the_name_is_what_a_certificate_must_have(tmp_path: Path) -> None:
    authority = Authority("webhooks")
    issued = authority.issue("localhost")
    certificate = write(tmp_path / "cert.pem", issued.certificate)
    key = write(tmp_path / "key.pem", issued.key_pem(PrivateFormat.PKCS8))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cadata=authority.certificate)
    async with Server(tls=context) as server:
        url = f"https://localhost:{server.port}/"
        assert await send(url, LOOPBACK, tls=trusting) == Answered(status=204)
        other = f"https://other.test:{server.port}/"
        for place, tls in ((other, trusting), (url, None)):
            refused = await send(place, LOOPBACK, Names("127.0.0.1"), tls)
            assert refused.status is None
            assert "certificate" in refused.error.lower()
        assert len(server.listeners) == 1


@in_a_loop
async def test_without_the_key_of_its_secret_nothing_is_sent() -> None:
    async with Server() as server:
        made = make_delivery()
        sender = Webhooks(RING, LOOPBACK, HostNames(), ssl.create_default_context())
        place = Webhook(url=f"http://127.0.0.1:{server.port}/", secret=made.webhook.secret)
        lost = replace(made, webhook=place)
        answer = await sender.send(lost, "{}", 0)
        assert (answer.status, server.connections) == (None, 0)
        assert "a key that this status does not have" in answer.error
