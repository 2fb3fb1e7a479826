"""Webhooks: which URLs and places are taken, and whose signature it is."""

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook as Independent
from standardwebhooks import WebhookVerificationError

from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.sealing import KeyRing, NotOpened
from waybill_shared.contract.webhooks import (
    WebhookRules,
    literal,
    open_secret,
    read_secret,
    read_target,
    seal_secret,
    sign_headers,
    write_secret,
)
from waybill_shared.process.clock import SystemClock

RULES = WebhookRules(allowed=allowed("hooks.internal,10.9.0.0/16"))
PUBLIC = "93.184.216.34"
SECRET = bytes(range(32))
RING = KeyRing(active=1, keys={1: b"k" * 32})
NONCE = b"n" * 12


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "it is no URL"),
        ("hooks.example/x", "it is no URL"),
        ("ftp://hooks.example/x", "it is no URL"),
        ("https://hooks.example/a b", "it is no URL"),
        ("https://hooks.example/#part", "it is no URL"),
        ("https://h\u00f6oks.example/", "it is no URL"),
        ("https://hooks.example\\@10.0.0.1/", "it is no URL"),
        ("https://hooks.example/\r\nhost: x", "it is no URL"),
        ("https://me:pass@hooks.example/", "has credentials in it"),
        ("https://me@hooks.example/", "has credentials in it"),
        ("https:///x", "names no host"),
        ("https://hooks.example:0/", "a port that is none"),
        ("https://hooks.example:99999/", "out of range"),
        ("https://hooks.example/" + "x" * 2_000, "more than 2000 characters"),
    ],
)
def test_what_is_no_url_of_a_webhook_is_said(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_target(url)


def test_a_url_is_shown_without_its_query() -> None:
    assert read_target("https://Hooks.Example:8443/a?key=1").shown == "https://hooks.example:8443/a"
    assert read_target("https://[2606:2800::1]?key").shown == "https://[2606:2800::1]/"
    assert read_target("http://hooks.example:80").shown == "http://hooks.example/"


@pytest.mark.parametrize(
    ("url", "addresses", "said"),
    [
        ("https://hooks.example/", ["10.0.0.1"], "not at a public address"),
        ("https://hooks.example/", [PUBLIC, "127.0.0.1"], "not at a public address"),
        ("https://hooks.example/", ["::ffff:10.0.0.1"], "not at a public address"),
        ("https://hooks.example/", ["169.254.169.254"], "not at a public address"),
        ("https://hooks.example/", [PUBLIC, "10.9.0.1", "10.8.0.1"], "not at a public address"),
        ("http://hooks.example/", [PUBLIC], "sent by https"),
        ("http://hooks.example/", [], "sent by https"),
        ("http://hooks.example/", [PUBLIC, "10.9.0.1"], "sent by https"),
        ("https://hooks.example:22/", [PUBLIC], "port 22 is none of"),
        ("https://hooks.example:22/", [], "port 22 is none of"),
    ],
)
def test_where_nothing_is_sent(url: str, addresses: list[str], said: str) -> None:
    assert said in (RULES.refusal(read_target(url), addresses) or "")


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("https://hooks.example/", [PUBLIC]),
        ("https://hooks.example:8443/", [PUBLIC]),
        ("https://hooks.example/", []),
        ("http://hooks.internal:9000/", ["10.0.0.1"]),
        ("http://hooks.example:9000/", ["10.9.0.1"]),
        ("https://hooks.example/", [PUBLIC, "10.9.0.1"]),
    ],
)
def test_where_webhooks_may_be(url: str, addresses: list[str]) -> None:
    assert RULES.refusal(read_target(url), addresses) is None


def test_a_host_may_be_an_address() -> None:
    found = [literal(each) for each in ("10.0.0.1", "::ffff:10.0.0.1", "hooks.example", "0x7f.1")]
    assert found == [("10.0.0.1",), ("::ffff:a00:1",), (), ()]


def test_another_implementation_knows_the_signature() -> None:
    body, now_s = '{"a": "\u00e4"}', SystemClock().now_ms() // 1000
    headers = sign_headers(SECRET, id="e.final", now_s=now_s, body=body.encode())
    receiver = Independent(write_secret(SECRET))
    receiver.verify(body, dict(headers))
    with pytest.raises(WebhookVerificationError):
        receiver.verify(body + " ", dict(headers))
    with pytest.raises(WebhookVerificationError):
        Independent(write_secret(SECRET[::-1])).verify(body, dict(headers))
    assert headers["webhook-signature"] == receiver.sign(
        "e.final", datetime.fromtimestamp(now_s, UTC), body
    )


@pytest.mark.parametrize("size", [24, 64])
def test_a_secret_is_read(size: int) -> None:
    assert read_secret(write_secret(bytes(size))) == bytes(size)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        write_secret(bytes(23)),
        write_secret(bytes(65)),
        write_secret(SECRET).removeprefix("whsec_"),
        write_secret(SECRET) + "!",
        "whsec_\u00e4" + "A" * 40,
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 30).decode(),
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="a secret is whsec_") as refused:
        read_secret(text)
    assert len(text) < 10 or text not in str(refused.value)


def test_a_secret_is_opened_for_its_watch_only() -> None:
    sealed = seal_secret(SECRET, RING, watch="a", nonce=NONCE)
    assert open_secret(sealed, RING, watch="a") == SECRET
    with pytest.raises(NotOpened):
        open_secret(sealed, RING, watch="b")
    with pytest.raises(NotOpened):
        open_secret(sealed, KeyRing(active=1, keys={1: b"x" * 32}), watch="a")
    with pytest.raises(NotOpened):
        open_secret("", RING, watch="a")
