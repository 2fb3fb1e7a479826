"""A web server of files on loopback, which can be asked to behave badly."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class ServedFile:
    """`cut_at`: the connection ends behind so many bytes of the file, once. `parts`: whether parts
    of it may be asked for. `status`: what is answered instead; `raw`: the whole answer, as bytes.
    `drip`: after it a byte comes now and then, for ever."""

    content: bytes
    version: str | None = '"1"'
    parts: bool = True
    cut_at: int | None = None
    status: int | None = None
    location: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    raw: bytes | None = None
    drip: bool = False


class FileServer:
    def __init__(self, port: int) -> None:
        self.files: dict[str, ServedFile] = {}
        self.port = port

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def put(self, name: str, served: ServedFile) -> ServedFile:
        self.files[f"/{name}"] = served
        return served


@contextmanager
def serving_files() -> Iterator[FileServer]:
    known: list[FileServer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, known[0].files.get(self.path.partition("?")[0]))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known.append(FileServer(server.server_address[1]))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield known[0]
        finally:
            server.shutdown()
            thread.join()


def _answer(request: BaseHTTPRequestHandler, served: ServedFile | None) -> None:
    if served is None:
        request.send_error(404)
        return
    served.before()
    asked = request.headers.get("Range")
    served.asked.append(asked)
    if served.raw is not None:
        request.wfile.write(served.raw)
        _drip(request, served)
        request.close_connection = True
        return
    if served.status is not None:
        request.send_response(served.status)
        if served.location is not None:
            request.send_header("Location", served.location)
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked and served.parts else 0
    whole = len(served.content)
    request.send_response(206 if start else 200)
    if served.version is not None:
        request.send_header("ETag", served.version)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
    request.send_header("Content-Length", str(whole - start))
    for name, value in served.headers.items():
        request.send_header(name, value)
    request.end_headers()
    end = whole if served.cut_at is None else served.cut_at
    served.cut_at = None
    request.wfile.write(served.content[start:end])
    request.wfile.flush()
    request.close_connection = True


def _drip(request: BaseHTTPRequestHandler, served: ServedFile) -> None:
    with suppress(OSError):
        while served.drip:
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.1)
