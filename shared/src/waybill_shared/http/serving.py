"""Serves an HTTP application until a signal; held requests are ended before it waits for any."""

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

STOP_TIMEOUT_S = 5  # for answers that are under way when the process is told to stop


def serve(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    on_server: Callable[[uvicorn.Server], None] = lambda server: None,
    on_stop: Callable[[], None] = lambda: None,
) -> bool:
    """Serve until a signal or `should_exit`; whether it came up. `on_stop` ends held requests."""
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
        on_stop,
    )
    on_server(server)
    server.run()
    return server.started


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)
