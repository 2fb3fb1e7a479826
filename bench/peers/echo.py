"""`python -m bench.peers.echo PORT`: the server that our services run on, with nothing in it.

`POST /` answers with what it got. `GET /events` holds an event stream, which `POST /fire` ends.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from threading import Event

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from waybill_local.ports import HOST
from waybill_shared.http.serving import serve
from waybill_shared.process.lifetime import shutdown_on_signals

OUTCOME = b'event: outcome\ndata: {"outcome": "complete"}\n\n'


class Streams:
    def __init__(self) -> None:
        self.fired = asyncio.Event()

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._wait(), media_type="text/event-stream")

    async def fire(self, request: Request) -> Response:
        self.fired.set()
        self.fired = asyncio.Event()
        return JSONResponse({})

    async def _wait(self) -> AsyncIterator[bytes]:
        fired = self.fired
        yield b'event: outcome\ndata: {"outcome": "in_progress"}\n\n'
        await fired.wait()
        yield OUTCOME


async def echo(request: Request) -> Response:
    return Response(await request.body(), media_type="application/json")


async def readyz(request: Request) -> Response:
    return JSONResponse({})


def main() -> int:
    streams = Streams()
    app = Starlette(
        routes=[
            Route("/", echo, methods=["POST"]),
            Route("/events", streams.events),
            Route("/fire", streams.fire, methods=["POST"]),
            Route("/readyz", readyz),
        ]
    )
    with shutdown_on_signals():
        serve(app, host=HOST, port=int(sys.argv[1]), failed=Event())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
