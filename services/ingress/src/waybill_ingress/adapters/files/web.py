"""Reads a file from a web server.

An address is looked up once and checked, and exactly that address is used. With a signature it is
the address of a connection, which people have named.
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final, Protocol
from urllib.parse import quote, urljoin, urlsplit

from waybill_ingress.adapters.files.opened import Opened, Passing, encoding_of
from waybill_ingress.adapters.files.patience import FetchPatience
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_shared.contract.addresses import AllowedAddresses
from waybill_shared.contract.version import VERSION

DIGITS_MAX: Final = 18
LINE_BYTES_MAX: Final = 65_536
REASON_BYTES_MAX: Final = 65_536
SILENCE_S: Final = 30.0
CONNECT_S: Final = 10.0  # to one address
REDIRECTS_MAX: Final = 5
PORTS: Final = {"http": 80, "https": 443}
IN_URLS: Final = "%/:=&?~#+!$,;'@()*[]"
MOVED: Final = frozenset({301, 302, 303, 307, 308})
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class Signature(Protocol):
    """Signs requests to a server that asks for it."""

    def headers(self, url: str, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return all headers to send."""

    def reason(self, body: bytes) -> str:
        """Return the reason that such a server names for its refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """The access to servers."""

    allowed: AllowedAddresses
    tls: ssl.SSLContext


class WebFile:
    def __init__(
        self, url: str, web: Web, patience: FetchPatience, signature: Signature | None = None
    ) -> None:
        self._url = url
        self._web = web
        self._patience = patience
        self._signature = signature

    def open(self, at: int) -> Opened:
        url = self._url
        for _ in range(REDIRECTS_MAX + 1):
            connection, answer = self._ask(url, at)
            if answer.status not in MOVED or self._signature is not None:
                try:
                    return self._accept_answer(connection, answer, at)
                except FetchFailed:
                    _end(connection, answer)
                    raise
            _end(connection, answer)
            target = answer.getheader("Location")
            if not target:
                raise FetchFailed(f"{answer.status} without a Location")
            url = _redirect_target(url, target)
        raise FetchFailed(f"it leads to another place more than {REDIRECTS_MAX} times")

    def _ask(self, url: str, at: int) -> tuple[HTTPConnection, "_Answer"]:
        self._patience.check()
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        except ValueError as error:
            raise FetchFailed(f"{_without_query(url)} is no URL: {error}") from error
        connection = _Connection(host, port, timeout=SILENCE_S)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = self._headers(url, parts.netloc.rpartition("@")[2], at)
        try:
            connection.sock = self._patience.watch(self._connect(host, port))
            if parts.scheme == "https":
                secured = self._web.tls.wrap_socket(
                    connection.sock, server_hostname=host, suppress_ragged_eofs=False
                )
                connection.sock = self._patience.watch(secured)
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            assert isinstance(answer, _Answer)
            return connection, answer
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            self._patience.check()
            raise Passing(_describe(error)) from error

    def _headers(self, url: str, host: str, at: int) -> dict[str, str]:
        headers = {
            "Host": host,
            "User-Agent": f"waybill/{VERSION}",
            "Accept-Encoding": "identity",
        }
        if at:
            headers["Range"] = f"bytes={at}-"
        return headers if self._signature is None else {**self._signature.headers(url, headers)}

    def _connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address that answers, if all of them may be fetched from."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Passing(f"{host:.200} is not found") from error
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        if self._signature is None and not self._web.allowed.all_allowed(host, addresses):
            # Without the address: whoever names hosts here must not explore the network.
            raise FetchFailed(
                f"{host:.200} is not at a public address: the people who run Waybill may allow it"
                " in WAYBILL_CONNECTORS_ALLOW"
            )
        last: OSError = OSError(f"{host:.200} has no address")
        for address in addresses:
            self._patience.check()
            try:
                connected = socket.create_connection((address, port), timeout=CONNECT_S)
                connected.settimeout(SILENCE_S)
                return connected
            except OSError as error:
                last = error
        raise last

    def _accept_answer(self, connection: HTTPConnection, answer: "_Answer", at: int) -> Opened:
        status = answer.status
        if status not in (200, 206) or (status == 206 and not at):
            kind = Passing if status in PASSING else FetchFailed
            raise kind(f"its server answers {status} {self._reason(answer)}")
        begins, size = 0, _whole(answer.getheader("Content-Length"))
        sent = (answer.getheader("Transfer-Encoding") or "").strip().lower()
        if (sent and not answer.chunked) or (size is None and not answer.chunked):
            raise FetchFailed(
                "its server says neither how long the file is, nor sends it in chunks: nobody could"
                " know whether it is whole"
            )
        if status == 206:
            unit, _, more = (answer.getheader("Content-Range") or "").partition(" ")
            span, _, whole = more.partition("/")
            size = _whole(whole)
            if unit != "bytes" or span.partition("-")[0] != str(at):
                raise Passing("its server sends another part than it was asked for")
            begins = at
        return Opened(
            read=answer.rest,
            close=lambda: _end(connection, answer),
            at=begins,
            size=size,
            version=_version(answer),
            encoding=encoding_of(self._url, answer.getheader("Content-Encoding")),
        )

    def _reason(self, answer: "_Answer") -> str:
        if self._signature is None:
            return f"{answer.reason:.100}"
        try:
            body = answer.read(REASON_BYTES_MAX)
        except (OSError, HTTPException, ValueError):
            self._patience.check()
            body = b""
        return self._signature.reason(body) or f"{answer.reason:.100}"


class _Answer(HTTPResponse):
    def _read_next_chunk_size(self) -> int:
        """Refuse a negative size, which would be read without end, and a cut one, which would be
        the last.
        """
        line = self.fp.readline(LINE_BYTES_MAX)
        size = int(line.partition(b";")[0], 16)
        if size < 0 or not line.endswith(b"\n"):
            raise HTTPException("a chunk has a size that is none")
        return size

    def rest(self, most: int) -> bytes:
        try:
            piece = self.read1(most)
        except (OSError, HTTPException, ValueError) as error:
            raise Passing(_describe(error)) from error
        if not piece and self.length:
            raise Passing(f"the connection ended, and {self.length} bytes were to come")
        return piece


class _Connection(HTTPConnection):
    response_class = _Answer


def _end(connection: HTTPConnection, answer: HTTPResponse) -> None:
    answer.close()
    connection.close()


def _redirect_target(url: str, target: str) -> str:
    """Return where a redirect leads."""
    try:
        found = urljoin(url, quote(target, safe=IN_URLS))
        scheme, before = urlsplit(found).scheme, urlsplit(url).scheme
    except ValueError as error:
        raise FetchFailed(f"it leads to {target!r:.200}, which is no URL") from error
    if scheme not in {before, "https"}:
        raise FetchFailed(f"it leads to {_without_query(found)}, which is not fetched")
    return found


def _version(answer: HTTPResponse) -> str | None:
    """Return the version of the file, or None if its server cannot distinguish two versions.

    A time of change is certain only when its second is over.
    """
    tag = answer.getheader("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    changed, now = answer.getheader("Last-Modified"), answer.getheader("Date")
    try:
        if changed and now and parsedate_to_datetime(changed) < parsedate_to_datetime(now):
            return changed
    except (ValueError, TypeError):
        pass
    return None


def _without_query(url: str) -> str:
    """Return the URL without its query, which may have a signature."""
    return url.partition("?")[0][:200]


def _whole(text: str | None) -> int | None:
    known = text is not None and text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX
    return int(text) if text is not None and known else None


def _describe(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
