"""Files, read from their beginning to their end, over HTTP or from a folder. Fulfils `Fetcher`.

An address is looked up once and checked, and that very one is connected to. A connection that
breaks is made again where it was, as long as the file is the same.
"""

import math
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from threading import Event, Thread
from typing import IO, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from waybill_ingress.app.connector_ports import FetchFailed, FileChanged
from waybill_ingress.core.connectors.limits import FetchLimits
from waybill_shared.contract.version import VERSION

DIGITS_MAX: Final = 18
LINE_BYTES_MAX: Final = 65_536
READ_BYTES: Final = 65_536
SILENCE_S: Final = 30.0
CONNECT_S: Final = 10.0  # to one address
LOOK_S: Final = 1.0  # between two looks at how fast it comes
SLOW_S: Final = 60.0  # of waiting for its server, in which a file may be slower
SLOWEST: Final = 1_000  # bytes a second
REDIRECTS_MAX: Final = 5
PORTS: Final = {"http": 80, "https": 443}
IN_URLS: Final = "%/:=&?~#+!$,;'@()*[]"
MOVED: Final = frozenset({301, 302, 303, 307, 308})
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
TRIES_MAX: Final = 5  # without a byte more
FIRST_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """The file from `at` on, or from its beginning. `version` is None if nobody can say it."""

    read: Callable[[int], bytes]
    close: Callable[[], None]
    at: int
    size: int | None
    version: str | None
    encoding: str = "identity"


class _Answer(HTTPResponse):
    def _read_next_chunk_size(self) -> int:
        """Else a negative one would be read without an end, and one that is cut off be the last."""
        line = self.fp.readline(LINE_BYTES_MAX)
        size = int(line.partition(b";")[0], 16)
        if size < 0 or not line.endswith(b"\n"):
            raise HTTPException("a chunk has a size that is none")
        return size

    def rest(self, most: int) -> bytes:
        piece = self.read1(most)
        if not piece and self.length:
            raise HTTPException(f"the connection ended, and {self.length} bytes were to come")
        return piece


class _Connection(HTTPConnection):
    response_class = _Answer


class _Passing(FetchFailed):
    """It may be otherwise in a moment."""


class UrlFetcher:
    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        self._tls = ssl.create_default_context()

    def fetch(self, url: str, stop: Event) -> "UrlDownload":
        return UrlDownload(url, self._limits, self._tls, stop)


class UrlDownload:
    """One reading of a file, which `stop` ends at once, as its end sets `stop`. Its calls block."""

    def __init__(self, url: str, limits: FetchLimits, tls: ssl.SSLContext, stop: Event) -> None:
        self._url = url
        self._limits = limits
        self._tls = tls
        self._stop = stop
        self._late: str | None = None
        self._waited_s, self._waits_since = 0.0, math.inf
        self._socket: socket.socket | None = None
        self.taken = 0
        Thread(target=self._end_in_time, name="deadline of a file", daemon=True).start()
        try:
            self._first: _Opened | None = self._open(0)
        except BaseException:
            self._stop.set()
            raise
        self.size, self.version = self._first.size, self._first.version
        self.encoding = self._first.encoding

    def pieces(self) -> Iterator[bytes]:
        tries, opened = 0, self._first
        self._first = None
        while True:
            before = self.taken
            try:
                opened = opened or self._again()
                with closing(opened):
                    yield from self._rest(opened)
                return
            except _Passing:
                tries = 1 if self.taken > before else tries + 1
                opened = None
                if tries == TRIES_MAX:
                    raise
                self._stop.wait(FIRST_PAUSE_S * 2.0**tries)
                self._check()

    def close(self) -> None:
        self._stop.set()
        if self._first is not None:
            self._first.close()

    def _end_in_time(self) -> None:
        """A server may send a byte now and then, or headers for ever: only this ends such calls."""
        deadline = time.monotonic() + self._limits.time_s
        while self._late is None and not self._stop.wait(LOOK_S):
            now = time.monotonic()
            waited_s = self._waited_s + max(0.0, now - self._waits_since)
            if now > deadline:
                self._late = f"it takes longer than {self._limits.time_s:.0f} s"
            elif waited_s > SLOW_S and self.taken < waited_s * SLOWEST:
                self._late = f"it comes slower than {SLOWEST} bytes a second"
        self._stop.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """For the server, and not for who takes what it sends."""
        self._waits_since = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - self._waits_since
            self._waits_since = math.inf

    def _check(self) -> None:
        if self._late is not None:
            raise FetchFailed(self._late)
        if self._stop.is_set():
            raise FetchFailed("it was stopped")

    def _again(self) -> _Opened:
        if self.taken and self.version is None:
            reason = f"the connection broke at byte {self.taken}"
            raise FileChanged(f"{reason}, and its server does not say whether a file has changed")
        opened = self._open(self.taken)
        if self.taken and (opened.version, opened.encoding) != (self.version, self.encoding):
            opened.close()
            raise FileChanged("the file is another one than a moment ago")
        return opened

    def _rest(self, opened: _Opened) -> Iterator[bytes]:
        left = self.taken - opened.at  # what was read before, where it comes again
        self.size = opened.size if self.size is None else self.size
        while piece := self._read(opened):
            fresh, left = piece[left:], max(0, left - len(piece))
            if fresh:
                self.taken += len(fresh)
                if self.taken > self._limits.bytes_max:
                    most = self._limits.bytes_max
                    raise FetchFailed(f"the file is larger than {most} bytes")
                yield fresh
        if self.size is not None and self.taken < self.size:
            raise _Passing(f"the connection ended at byte {self.taken} of {self.size}")

    def _read(self, opened: _Opened) -> bytes:
        self._check()
        try:
            with self._waiting():
                piece = opened.read(READ_BYTES)
        except (OSError, HTTPException, ValueError) as error:
            self._check()
            raise _Passing(_said(error)) from error
        if not piece:
            self._check()  # for that it ends, too
        return piece

    def _open(self, at: int) -> _Opened:
        if urlsplit(self._url).scheme == "file":
            return self._open_file(at)
        with self._waiting():
            return self._open_url(at)

    def _open_url(self, at: int) -> _Opened:
        url = self._url
        for _ in range(REDIRECTS_MAX + 1):
            connection, response = self._ask(url, at)
            if response.status not in MOVED:
                try:
                    return self._opened(connection, response, at)
                except FetchFailed:
                    _end(connection, response)
                    raise
            _end(connection, response)
            target = response.getheader("Location")
            if not target:
                raise FetchFailed(f"{response.status} without a Location")
            url = _behind(url, target)
        raise FetchFailed(f"it leads to another place more than {REDIRECTS_MAX} times")

    def _ask(self, url: str, at: int) -> tuple[HTTPConnection, _Answer]:
        self._check()
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        except ValueError as error:
            raise FetchFailed(f"{_shown(url)} is no URL: {error}") from error
        connection = _Connection(host, port, timeout=SILENCE_S)
        headers = {
            "Host": parts.netloc.rpartition("@")[2],
            "User-Agent": f"waybill/{VERSION}",
            "Accept-Encoding": "identity",
        }
        if at:
            headers["Range"] = f"bytes={at}-"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.sock = self._socket = self._connected(host, port)
            if parts.scheme == "https":
                connection.sock = self._tls.wrap_socket(
                    connection.sock, server_hostname=host, suppress_ragged_eofs=False
                )
                self._socket = connection.sock
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            assert isinstance(answer, _Answer)
            return connection, answer
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            self._check()
            raise _Passing(_said(error)) from error

    def _connected(self, host: str, port: int) -> socket.socket:
        """To the first address that answers, of those which may be fetched from."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise _Passing(f"{host:.200} is not found") from error
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        allowed = self._limits.allowed
        if not allowed.host(host):
            for address in addresses:
                if not allowed.address(address):
                    raise FetchFailed(
                        f"{host:.200} is at {address}, which is not public: the people who run"
                        " Waybill may allow it in WAYBILL_CONNECTORS_ALLOW"
                    )
        last: OSError = OSError(f"{host:.200} has no address")
        for address in addresses:
            self._check()
            try:
                connected = socket.create_connection((address, port), timeout=CONNECT_S)
                connected.settimeout(SILENCE_S)
                return connected
            except OSError as error:
                last = error
        raise last

    def _opened(self, connection: HTTPConnection, response: _Answer, at: int) -> _Opened:
        status = response.status
        if status not in (200, 206) or (status == 206 and not at):
            kind = _Passing if status in PASSING else FetchFailed
            raise kind(f"its server answers {status} {response.reason:.100}")
        begins, size = 0, _whole(response.getheader("Content-Length"))
        encoding = _encoding(self._url, response.getheader("Content-Encoding"))
        sent = (response.getheader("Transfer-Encoding") or "").strip().lower()
        if (sent and not response.chunked) or (size is None and not response.chunked):
            raise FetchFailed(
                "its server says neither how long the file is, nor sends it in chunks: nobody could"
                " know whether it is whole"
            )
        if status == 206:
            unit, _, more = (response.getheader("Content-Range") or "").partition(" ")
            span, _, whole = more.partition("/")
            size = _whole(whole)
            if unit != "bytes" or span.partition("-")[0] != str(at):
                raise _Passing("its server sends another part than it was asked for")
            begins = at

        return _Opened(
            read=response.rest,
            close=lambda: _end(connection, response),
            at=begins,
            size=size,
            version=_version(response),
            encoding=encoding,
        )

    def _open_file(self, at: int) -> _Opened:
        root = self._limits.files
        if root is None:
            raise FetchFailed("no file is read here: WAYBILL_CONNECTORS_FILES names no folder")
        path = Path(os.path.realpath(unquote(urlsplit(self._url).path)))
        if not path.is_relative_to(os.path.realpath(root)):
            raise FetchFailed("it is not in the folder that WAYBILL_CONNECTORS_FILES names")
        try:
            if not path.is_file():
                raise FetchFailed("there is no such file")
            file: IO[bytes] = path.open("rb")
            known = os.fstat(file.fileno())
            file.seek(at)
        except OSError as error:
            raise FetchFailed(error.strerror or str(error)) from error
        return _Opened(
            read=file.read,
            close=file.close,
            at=at,
            size=known.st_size,
            version=f"{known.st_ino}-{known.st_mtime_ns}-{known.st_size}",
            encoding=_encoding(self._url, None),
        )


def _encoding(url: str, header: str | None) -> str:
    """How it is packed: as its server says, or its name."""
    said = (header or "").strip().lower()
    if said not in ("", "identity"):
        return said
    name = urlsplit(url).path.lower()
    return "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else "identity"


def _end(connection: HTTPConnection, response: HTTPResponse) -> None:
    response.close()
    connection.close()


def _behind(url: str, target: str) -> str:
    """Where a redirect leads."""
    try:
        found = urljoin(url, quote(target, safe=IN_URLS))
        scheme, before = urlsplit(found).scheme, urlsplit(url).scheme
    except ValueError as error:
        raise FetchFailed(f"it leads to {target!r:.200}, which is no URL") from error
    if scheme not in {before, "https"}:
        raise FetchFailed(f"it leads to {_shown(found)}, which is not fetched")
    return found


def _version(response: HTTPResponse) -> str | None:
    """Of the file, if its server can tell one from the next: a time of change is that of the last
    one only when its second is over."""
    tag = response.getheader("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    changed, now = response.getheader("Last-Modified"), response.getheader("Date")
    try:
        if changed and now and parsedate_to_datetime(changed) < parsedate_to_datetime(now):
            return changed
    except (ValueError, TypeError):
        pass
    return None


def _shown(url: str) -> str:
    """Without its query, in which there may be a signature."""
    return url.partition("?")[0][:200]


def _whole(text: str | None) -> int | None:
    known = text is not None and text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX
    return int(text) if text is not None and known else None


def _said(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
