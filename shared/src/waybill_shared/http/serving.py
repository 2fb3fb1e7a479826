"""Serves an HTTP application until a signal, or until it has failed for good.

Requests that wait are ended before it waits for any.
"""

import socket
from collections.abc import Callable
from threading import Event

import uvicorn
from starlette.types import ASGIApp

STOP_TIMEOUT_S = 5  # for answers that are under way when the process must stop


def serve(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    failed: Event,
    on_stop: Callable[[], None] = lambda: None,
) -> bool:
    """Serve until a signal or a failure.

    Return True if it started, and ended without having `failed`. `on_stop` ends requests that wait.
    """
    server = _Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            loop="uvloop",
            http="httptools",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STOP_TIMEOUT_S,
        ),
        failed,
        on_stop,
    )
    server.run()
    return server.started and not failed.is_set()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, failed: Event, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._failed = failed
        self._on_stop = on_stop

    async def on_tick(self, counter: int) -> bool:
        return self._failed.is_set() or await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)
