"""Webhooks: where events are sent to, which places are refused, and how requests are signed.

Signatures are those of Standard Webhooks. A secret is sealed wherever it is kept.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from waybill_shared.contract.addresses import AllowedAddresses, is_public
from waybill_shared.contract.sealing import KeyRing, open_bytes, seal_bytes

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32  # of one that is made
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
SEAL: Final = "whs1."
URL_CHARACTERS_MAX: Final = 2_000
URL: Final = re.compile(r"https?://[!-~]+", re.IGNORECASE)  # no spaces, and plain ASCII
NOT_IN_URLS: Final = frozenset('"<>\\^`{|}#')
PORTS: Final = {"http": 80, "https": 443}
HTTPS_PORTS: Final = frozenset({443, 8443})


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """`secret`: sealed, and bound to the watch that it is for."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """A URL, read. `path`: with its query."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """Without the query, in which there may be secrets."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRules:
    """`allowed`: what the people who run Waybill have named, at any port and over http too."""

    allowed: AllowedAddresses
    ports: frozenset[int] = HTTPS_PORTS

    def refusal(self, target: WebhookTarget, addresses: Sequence[str]) -> str | None:
        """Return why nothing is sent there; None if it may be sent.

        `addresses` are those of its host, as far as they are known.
        """
        if self.allowed.host(target.host):
            return None
        strangers = [each for each in addresses if not self.allowed.names(each)]
        if addresses and not strangers:
            return None
        if not all(map(is_public, strangers)):
            return f"{target.host:.200} is not at a public address: {_ALLOW}"
        if target.scheme != "https":
            return f"webhooks are sent by https: {_ALLOW} over http"
        if target.port not in self.ports:
            ports = ", ".join(map(str, sorted(self.ports)))
            return f"port {target.port} is none of those in WAYBILL_WEBHOOKS_PORTS: {ports}"
        return None


_ALLOW: Final = "the people who run Waybill may name it in WAYBILL_WEBHOOKS_ALLOW, and allow it"


def read_target(url: str) -> WebhookTarget:
    """Parse the URL of a webhook. Raise ValueError with the reason if it is not allowed."""
    if len(url) > URL_CHARACTERS_MAX:
        raise ValueError(f"the URL has more than {URL_CHARACTERS_MAX} characters")
    if not URL.fullmatch(url) or NOT_IN_URLS.intersection(url):
        raise ValueError(
            "it is no URL as webhooks have them: https://HOST/PATH in ASCII, without spaces and"
            " without a fragment"
        )
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("the URL has credentials in it: leave them out, and check the signature")
    port = parts.port  # ValueError when it is none
    if not parts.hostname or port == 0:
        raise ValueError("the URL names no host, or a port that is none")
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(scheme=scheme, host=parts.hostname, port=port or PORTS[scheme], path=path)


def without_query(url: str) -> str:
    """Return the URL as people see it, also one that was accepted by earlier rules."""
    try:
        return read_target(url).shown
    except ValueError:
        return "a URL that is not allowed any more"


def literal(host: str) -> tuple[str, ...]:
    """Return the address if the host is one; otherwise an empty tuple."""
    try:
        return (str(ip_address(host)),)
    except ValueError:
        return ()


def read_secret(text: str) -> bytes:
    """Return the bytes of a secret.

    The message of ValueError says what is wrong with it, and never shows the secret.
    """
    try:
        known = text.startswith(SECRET_PREFIX)
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        known, secret = False, b""
    if not known or not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"a secret is {SECRET_PREFIX} and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes"
            " in Base64; leave it out to have one made"
        )
    return secret


def write_secret(secret: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def seal_secret(secret: bytes, ring: KeyRing, *, watch: str, nonce: bytes) -> str:
    sealed = seal_bytes(secret, ring, nonce=nonce, bound=(SEAL, watch))
    return base64.b64encode(sealed).decode()


def open_secret(sealed: str, ring: KeyRing, *, watch: str) -> bytes:
    """Open a sealed secret. Raise NotOpened if the ring lacks the key."""
    return open_bytes(base64.b64decode(sealed), ring, bound=(SEAL, watch))


def sign_headers(secret: bytes, *, id: str, now_s: int, body: bytes) -> Mapping[str, str]:
    """Return the headers that Standard Webhooks demands, with the signature."""
    signed = b".".join((id.encode(), str(now_s).encode(), body))
    signature = base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{signature}",
    }
