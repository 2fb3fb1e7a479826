"""Sends HTTP requests one after the other over many connections, as cheaply as Python can."""

import asyncio
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "


Sent = Callable[[], bytes]


def request(method: str, path: str, body: bytes, kind: str, *more: str) -> bytes:
    """`more`: further lines of its head."""
    lines = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", *more)
    head = "\r\n".join((*lines, f"Content-Length: {len(body)}"))
    return head.encode() + END_OF_HEAD + body


def place_of(url: str) -> tuple[str, int]:
    address = urlsplit(url)
    assert address.hostname is not None and address.port is not None
    return address.hostname, address.port


def rate(url: str, sent: Sent, *, connections: int, requests: int) -> float:
    """Requests per second that were answered with 200; `sent` gives the next one."""
    return asyncio.run(_rate(url, sent, connections, requests))


async def _rate(url: str, sent: Sent, connections: int, requests: int) -> float:
    host, port = place_of(url)
    streams = [await asyncio.open_connection(host, port) for _ in range(connections)]
    left = iter(range(requests))
    began = time.perf_counter()
    await asyncio.gather(*(_repeat(reader, writer, sent, left) for reader, writer in streams))
    seconds = time.perf_counter() - began
    for _, writer in streams:
        writer.close()
        await writer.wait_closed()
    return requests / seconds


async def _repeat(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: Sent, left: Iterator[int]
) -> None:
    for _ in left:
        writer.write(sent())
        head = await reader.readuntil(END_OF_HEAD)
        body = await reader.readexactly(_length(head))
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head.decode()}{body.decode()}")


def _length(head: bytes) -> int:
    found = head.lower().partition(LENGTH)[2].partition(b"\r\n")[0]
    return int(found)
