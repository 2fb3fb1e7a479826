"""A stream of events ends with its events, with its reader, or with a fault; never by itself."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from unit.status.coroutines import WAIT_S, in_a_loop
from waybill_status.adapters.http.streams import EventStream


class Server:
    """As an ASGI server does it: `receive` tells that the reader has gone, or that all is sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.over = asyncio.Event()

    async def receive(self) -> Message:
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body" and not message["more_body"]:
            self.over.set()

    async def serve(self, events: AsyncGenerator[bytes, None]) -> None:
        async with asyncio.timeout(WAIT_S):
            await EventStream(events)({"type": "http"}, self.receive, self.send)

    def told(self) -> list[bytes]:
        return [message["body"] for message in self.sent if "body" in message]


class Events:
    """Two, then what `end` does."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.left = False

    async def then(self, end: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            yield b"two"
            if end == "fails":
                raise ValueError("a fault of ours")
            if end == "reader leaves":
                self.server.over.set()
                await asyncio.Event().wait()
        finally:
            self.left = True


@in_a_loop
async def test_stream_ends_with_its_events() -> None:
    server = Server()
    events = Events(server)
    await server.serve(events.then("ends"))
    assert server.told() == [b"one", b"two", b""]
    assert (b"content-type", b"text/event-stream; charset=utf-8") in server.sent[0]["headers"]
    assert "content-length" not in dict(server.sent[0]["headers"])
    assert events.left


@in_a_loop
async def test_reader_that_leaves_is_not_waited_for() -> None:
    server = Server()
    events = Events(server)
    await server.serve(events.then("reader leaves"))
    assert server.told() == [b"one", b"two"]
    assert events.left


@in_a_loop
async def test_fault_ends_the_stream_unfinished() -> None:
    server = Server()
    events = Events(server)
    with pytest.raises(ExceptionGroup) as found:
        await server.serve(events.then("fails"))
    assert "a fault of ours" in str(found.value.exceptions[0])
    assert server.told() == [b"one", b"two"], "the connection is cut, so nobody takes it for all"
    assert events.left
