"""The connection of an `AsyncClient`: requests go in, JSON comes out. Never repeats a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from waybill.connection import Line
from waybill.fields import Fields
from waybill.questions import Question
from waybill.target import Target


class AsyncConnection:
    """A connection to one target, for an event loop."""

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float,
        api_key: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.line = Line(target)
        self._timeout_s = timeout_s
        self._http = httpx2.AsyncClient(transport=transport, **self.line.options(api_key))

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, question: Question, *, wait_s: float = 0.0) -> Fields:
        """Return the JSON object of the answer.

        `wait_s`: for so long the server may wait before it answers; the timeout grows by it.
        """
        timeout_s = self._timeout_s + wait_s
        with self.line.translate_errors(timeout_s):
            async with self._open(question, timeout_s) as response:
                await response.aread()
                return self.line.json(response, question)

    async def text(self, question: Question) -> str:
        """Return the text of the answer, such as metrics."""
        timeout_s = self._timeout_s
        with self.line.translate_errors(timeout_s):
            async with self._open(question, timeout_s) as response:
                await response.aread()
                if response.status_code != httpx2.codes.OK:
                    self.line.json(response, question)
                return response.text

    @asynccontextmanager
    async def listen(
        self, question: Question, *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the bytes of an event stream; raise NoAnswer after `silence_s` without any."""
        with self.line.translate_errors(silence_s):
            async with self._open(question, silence_s) as response:
                if response.status_code != httpx2.codes.OK:
                    await response.aread()
                    self.line.json(response, question)
                self.line.check_stream(response, question)
                yield response.aiter_bytes()

    @asynccontextmanager
    async def _open(self, question: Question, timeout_s: float) -> AsyncIterator[httpx2.Response]:
        request = self.line.request(self._http, question, timeout_s)
        response = await self._http.send(request, stream=True)
        try:
            self.line.has_answered = True
            yield response
        finally:
            await response.aclose()
