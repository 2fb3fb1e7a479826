"""`python -m waybill_local.gateway`: one port for all services, by the route table in `shared`.

Owns what concerns all services: readiness, OpenAPI, documentation. It has no resources of its own.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from waybill_local.openapi import merge
from waybill_local.ports import HOST, address
from waybill_local.proxy import Upstreams, forward
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import HTTP_SERVICES, SERVICES, methods_of, route_for
from waybill_shared.contract.version import VERSION
from waybill_shared.http import asyncapi
from waybill_shared.http.dialects import refuse
from waybill_shared.http.host_guard import HostGuard
from waybill_shared.http.request_ids import RequestIds, request_id
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run
from waybill_shared.settings.hosts import HostSettings
from waybill_shared.settings.service import read_settings

NAME = "gateway"
ASK_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 3
DOCS = Path(__file__).with_name("docs.html")

_Answers = Mapping[str, tuple[int, Any]]


class Settings(HostSettings):
    """The ports of this process and of the services that it calls. Those check the API keys."""

    gateway_port: int = 8080
    ingress_port: int = 8081
    status_port: int = 8082
    token_tracker_port: int = 8083
    stage_runner_port: int = 8084
    log_format: Literal["json", "console"] = "json"

    @property
    def upstream_ports(self) -> dict[str, int]:
        return {service: getattr(self, f"{service}_port") for service in SERVICES}


def create_app(upstreams: Upstreams, hosts: AllowedHosts | None = LOOPBACK_ONLY) -> Starlette:
    """Return the gateway to these services.

    `hosts`: the names by which it may be called. None: by any name, since the services ask for API
    keys.
    """
    gateway = Gateway(upstreams)
    guards = [Middleware(HostGuard, hosts=hosts)] if hosts is not None else []

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await upstreams.aclose()

    app = Starlette(
        lifespan=lifespan,
        middleware=[Middleware(RequestIds), *guards],
        routes=[
            Route("/healthz", gateway.healthz),
            Route("/readyz", gateway.readyz),
            Route("/version", gateway.version),
            Route("/openapi.json", gateway.openapi),
            Route(asyncapi.PATH, gateway.asyncapi),
            Route("/docs", gateway.docs),
            Route("/metrics/{service}", gateway.metrics),
        ],
    )
    app.router.redirect_slashes = False
    app.router.default = gateway.proxy
    return app


class Gateway:
    """The endpoints of the gateway."""

    def __init__(self, upstreams: Upstreams) -> None:
        self.upstreams = upstreams

    async def proxy(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request if its path is in the route table, else answer with a problem."""
        path = scope["raw_path"].decode("latin-1")
        if route := route_for(scope["method"], path):
            scope["route"] = route
            await forward(self.upstreams, route.service, scope, receive, send)
        else:
            answer = _unknown(scope["method"], path, scope["waybill.request_id"])
            await answer(scope, receive, send)

    async def healthz(self, request: Request) -> Response:
        return JSONResponse({"alive": True})

    async def readyz(self, request: Request) -> Response:
        """Return 200 if every service is ready, else 503, with the answer of each."""
        answers = await self._ask_all("/readyz", SERVICES)
        status = 200 if all(code == 200 for code, _ in answers.values()) else 503
        return JSONResponse({name: body for name, (_, body) in answers.items()}, status_code=status)

    async def version(self, request: Request) -> Response:
        answers = await self._ask_all("/version", SERVICES)
        services = {name: body for name, (_, body) in answers.items()}
        return JSONResponse({"service": NAME, "version": VERSION, "services": services})

    async def openapi(self, request: Request) -> Response:
        answers = await self._ask_all("/openapi.json", HTTP_SERVICES)
        missing = [name for name, (code, _) in answers.items() if code != 200]
        if missing:
            names = " and ".join(missing)
            refusal = Refusal(Slug.SERVICE_UNREACHABLE, f"{names} did not say what it can")
            return refuse(refusal, path=request.url.path, request_id=request_id(request))
        return JSONResponse(merge({name: body for name, (_, body) in answers.items()}, VERSION))

    async def asyncapi(self, request: Request) -> Response:
        return JSONResponse(asyncapi.document())

    async def docs(self, request: Request) -> Response:
        return FileResponse(DOCS, media_type="text/html")

    async def metrics(self, request: Request) -> Response:
        service = request.path_params["service"]
        if service not in SERVICES:
            known = ", ".join(SERVICES)
            refusal = Refusal(Slug.NOT_FOUND, f"no service {service!r}; there are {known}")
            return refuse(refusal, path=request.url.path, request_id=request_id(request))
        return _Forwarded(self.upstreams, service, b"/metrics")

    async def _ask_all(self, path: str, services: tuple[str, ...]) -> _Answers:
        answers = await asyncio.gather(*(self._ask(service, path) for service in services))
        return dict(zip(services, answers, strict=True))

    async def _ask(self, service: str, path: str) -> tuple[int, Any]:
        """Return the status and JSON body of an answer; (502, reason) if the service gives none."""
        url = f"http://{address(self.upstreams.ports[service])}{path}"
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), ASK_TIMEOUT_S)
        request = httpx2.Request("GET", url, extensions={"timeout": timeout})
        try:
            async with self.upstreams.transport(waits=False) as transport:
                response = await transport.handle_async_request(request)
                await response.aread()
                return response.status_code, response.json()
        except (httpx2.TransportError, ValueError) as error:
            return 502, {"error": str(error) or type(error).__name__}


class _Forwarded(Response):
    """The answer of a service at another path."""

    def __init__(self, upstreams: Upstreams, service: str, path: bytes) -> None:
        super().__init__()
        self.upstreams = upstreams
        self.service = service
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        moved = {**scope, "raw_path": self.path}
        await forward(self.upstreams, self.service, moved, receive, send)


def _unknown(method: str, path: str, request_id: str) -> Response:
    allowed = methods_of(path)
    if not allowed:
        nothing = Refusal(Slug.NOT_FOUND, f"nothing at {path}", hint="GET /docs lists all")
        return refuse(nothing, path=path, request_id=request_id)
    names = ", ".join(allowed)
    other = Refusal(Slug.METHOD_NOT_ALLOWED, f"{path} takes {names}, not {method}")
    answer = refuse(other, path=path, request_id=request_id)
    answer.headers["Allow"] = names
    return answer


def main() -> None:
    settings = read_settings(Settings)
    logs.configure(NAME, settings.log_format)
    hosts = None if settings.api_keys_file else settings.hosts
    uvicorn.run(
        create_app(Upstreams(ports=settings.upstream_ports), hosts),
        host=HOST,
        port=settings.gateway_port,
        access_log=False,
        log_config=None,
        log_level="warning",
        # The services' own Date and Server headers are passed on.
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )


if __name__ == "__main__":
    sys.exit(run(main))
