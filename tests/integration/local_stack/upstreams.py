"""A service behind a gateway, which tells what it was asked and ends when it is told to."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

WAIT_S = 120.0
POLL_S = 0.01


@dataclass(slots=True)
class Upstream:
    """A small service: what it saw, and what the test lets it do."""

    name: str
    ready: bool = True
    go_on: threading.Event = field(default_factory=threading.Event)
    got_part: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    async def echo(self, request: Request) -> Response:
        answer = {
            "service": self.name,
            "target": request.scope["raw_path"].decode() + "?" + request.url.query,
            "headers": dict(request.headers),
            "body": (await request.body()).decode(),
        }
        headers = {"x-upstream": "yes", "keep-alive": "timeout=9", "location": "/v1/operations/1"}
        return JSONResponse(answer, status_code=202, headers=headers)

    async def token(self, t: str, request: Request) -> Response:
        if t == "stream":
            return StreamingResponse(self.events(), media_type="text/event-stream")
        if t == "cut":
            return StreamingResponse(self.beginning(), media_type="text/plain")
        if t == "held":
            await self.hold(request)
        return await self.echo(request)

    async def events(self) -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            while not self.go_on.is_set():
                await asyncio.sleep(POLL_S)
            yield b"data: 2\n\n"
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def beginning(self) -> AsyncIterator[bytes]:
        yield b"the beginning"
        raise ConnectionError("the service broke in the middle")

    async def hold(self, request: Request) -> None:
        self.got_part.set()
        while not self.go_on.is_set():
            if await request.is_disconnected():
                self.cancelled.set()
                return
            await asyncio.sleep(POLL_S)

    async def records(self, request: Request) -> Response:
        parts = []
        async for part in request.stream():
            parts.append(part)
            self.got_part.set()
        return JSONResponse({"parts": [part.decode() for part in parts if part]})

    async def readyz(self) -> Response:
        return JSONResponse({"kafka": "ok"}, status_code=200 if self.ready else 503)

    async def metrics(self) -> Response:
        return Response(f"of_{self.name} 1\n", media_type="text/plain")


def make_service(upstream: Upstream) -> FastAPI:
    app = FastAPI()
    app.add_api_route("/v1/tokens/{t}", upstream.token)
    app.add_api_route("/v1/tokens", upstream.echo, methods=["POST"])
    app.add_api_route("/v1/pipelines/{p}", upstream.echo, operation_id="read")
    app.add_api_route("/v1/pipelines/{p}", upstream.echo, methods=["PUT"], operation_id="write")
    records = "/v1/pipelines/{p}/inputs/{i}/records"
    app.add_api_route(records, upstream.records, methods=["POST"])
    app.add_api_route("/readyz", upstream.readyz)
    app.add_api_route("/metrics", upstream.metrics)
    return app
