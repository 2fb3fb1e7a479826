"""What the HTTP services have in common: refusals, request ids, keys, health, metrics, version.

Builds the FastAPI application around a service's routes; decides nothing about the service.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from typing import Any, Final, Protocol

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from waybill_shared.access.authentication import ANYONE, BEARER, KeysInForce
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import ContractError, Refusal, Retryable, UserError
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import HOME, scope_for, token_is_enough
from waybill_shared.contract.version import VERSION
from waybill_shared.http.dialects import refuse
from waybill_shared.http.host_guard import HostGuard
from waybill_shared.http.openapi import describe
from waybill_shared.http.plain_routes import serve_plainly
from waybill_shared.http.request_ids import RequestIds, request_id
from waybill_shared.process import metrics
from waybill_shared.process.health import Health, ready

NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
NOT_READY: Final[dict[str, Any]] = {
    "description": "something is wrong",
    "content": {"application/json": {"schema": {"type": "object"}}},
}
FROM_PAGES: Final = (
    "Authorization", "Content-Encoding", "Content-Type", "Idempotency-Key", "If-Match",
    "Last-Event-ID", "X-Request-Id",
)  # fmt: skip
TO_PAGES: Final = ("Idempotent-Replayed", "Location", "Retry-After", "X-Request-Id")
"""Headers that a page of another site may send, and read."""
SLUG_OF: Final = {slug.status: slug for slug in (Slug.NOT_FOUND, Slug.METHOD_NOT_ALLOWED)}


class Lifespan(Protocol):
    def __call__(self, app: FastAPI) -> AbstractAsyncContextManager[None]: ...


def create_app(
    service: str,
    routers: Sequence[APIRouter],
    health: Health,
    lifespan: Lifespan | None = None,
    keys: KeysInForce | None = None,
    *,
    open_tokens: bool = False,
    origins: Sequence[str] = (),
    hosts: AllowedHosts = LOOPBACK_ONLY,
) -> FastAPI:
    """Build the application. Without `keys` all who reach it by one of `hosts` may do everything.
    `open_tokens`: who has a token may ask for it without a key. `origins`: web pages from there may
    use all routes."""
    guard = _guard(keys, open_tokens=open_tokens, origins=origins)
    app = FastAPI(
        title=f"Waybill {service}",
        version=VERSION,
        lifespan=lifespan,
        dependencies=[Depends(guard)],
        telemetry=NO_TELEMETRY,
        redirect_slashes=False,
    )
    if keys:
        health.checks["api_keys"] = keys.check
    for router in routers:
        app.include_router(router)
    serve_plainly(app, routers, guard)
    if not any(getattr(route, "path", None) == HOME for each in routers for route in each.routes):
        _add_home(app)
    _add_operations(app, service, health)
    describe(app)
    app.add_exception_handler(ContractError, _on_error)
    app.add_exception_handler(HTTPException, _on_error)
    app.add_exception_handler(RequestValidationError, _on_error)
    app.add_exception_handler(Exception, _on_fault)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=FROM_PAGES,
            expose_headers=TO_PAGES,
        )
    if keys is None:
        app.add_middleware(HostGuard, hosts=hosts)
    app.add_middleware(RequestIds)
    return app


def caller(request: Request) -> Caller:
    """Return the sender of a request to a route that needs a scope."""
    asking = request.scope["waybill.caller"]
    assert isinstance(asking, Caller)
    return asking


def hold(request: Request) -> None:
    """Mark a request that waits for something to happen, so that its duration is not measured: it
    says nothing of the service.
    """
    request.scope["waybill.held"] = True


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """Read the complete body.

    Answer 413 as soon as it is known to be too large, with or without a Content-Length.
    """
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else 0
    pieces: list[bytes] = []
    if size <= bytes_max:
        size = 0
        try:
            async for piece in request.stream():
                size += len(piece)
                if size > bytes_max:
                    break
                pieces.append(piece)
        except ClientDisconnect as error:  # nobody is left to read the answer
            raise Refusal(Slug.REQUEST_CUT_OFF, "the body has no end") from error
    if size > bytes_max:
        detail = f"the body is larger than {bytes_max} bytes: send it in several requests"
        raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=bytes_max)
    return b"".join(pieces)


def _guard(
    keys: KeysInForce | None, *, open_tokens: bool, origins: Sequence[str]
) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that requires the key that a route needs, and notes its owner.

    It looks at the route that was found and never at the path: what a path means is decided once.
    """

    async def admit(request: Request) -> None:
        if keys is None:
            _refuse_strangers(request, origins)
            request.scope["waybill.caller"] = ANYONE
            return
        path = request.scope["route"].path
        scope = scope_for(request.method, path)
        given = request.headers.get("authorization", "")
        if open_tokens and not given and token_is_enough(request.method, path):
            request.scope["waybill.caller"] = BEARER
        elif scope is not None:
            request.scope["waybill.caller"] = keys.require(given, scope)

    return admit


def _refuse_strangers(request: Request, origins: Sequence[str]) -> None:
    """Refuse writes by pages of other sites if there are no keys.

    Otherwise any page in a browser on this machine could write here. Browsers send the origin of a
    page, and our own pages have ours.
    """
    origin = request.headers.get("origin")
    if origin is None or request.method in ("GET", "HEAD") or origin in origins:
        return
    if origin.partition("://")[2] != request.headers.get("host"):
        detail = f"a page from {origin:.100} may change nothing here"
        hint = "set WAYBILL_CORS_ORIGINS, or use API keys"
        raise Refusal(Slug.ORIGIN_REFUSED, detail, hint=hint)


def _add_home(app: FastAPI) -> None:
    @app.get(HOME, tags=["operations"], status_code=307, response_class=RedirectResponse)
    async def home() -> str:
        """Redirect to `/docs`, which shows all operations."""
        return "/docs"


def _add_operations(app: FastAPI, service: str, health: Health) -> None:
    @app.get("/healthz", tags=["operations"])
    async def healthz() -> Response:
        """Report that the process is alive: it answers."""
        health.beat()  # answering is this loop's beat
        return JSONResponse({"alive": True})

    @app.get("/readyz", tags=["operations"], responses={503: NOT_READY})
    def readyz() -> Response:
        """Report each thing that the service needs by its name, with `ok` or what is wrong."""
        readiness = health.readiness()
        return JSONResponse(readiness, status_code=200 if ready(readiness) else 503)

    @app.get("/version", tags=["operations"])
    async def version() -> dict[str, str]:
        """Return the service and its version."""
        return {"service": service, "version": VERSION}

    @app.get("/metrics", tags=["operations"], response_class=PlainTextResponse)
    def metrics_text() -> Response:
        """Return what the service measures, for Prometheus; docs/metrics.md has the names."""
        text = metrics.text_of(service, health.readiness())
        return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})


def refused(request: Request, error: Exception) -> Response:
    """Return the answer to a request that ended with this error.

    Raise the error if it is our own fault.
    """
    return _say(request, _refusal_of(request, error))


async def _on_error(request: Request, error: Exception) -> Response:
    return refused(request, error)


async def _on_fault(request: Request, error: Exception) -> Response:
    """Answer a fault of ours.

    Starlette raises the error again after this answer, and the server logs it.
    """
    own = request_id(request)
    detail = f"this is a fault of the service; its log names request {own}"
    answer = _say(request, Refusal(Slug.INTERNAL, detail))
    answer.headers["X-Request-Id"] = own  # this answer is given outside of RequestIds
    return answer


def _say(request: Request, refusal: Refusal) -> Response:
    return refuse(refusal, path=request.scope["path"], request_id=request_id(request))


def _refusal_of(request: Request, error: Exception) -> Refusal:
    """Return the refusal that an error means to the caller.

    Any other error is our fault, and is raised.
    """
    match error:
        case Refusal():
            return error
        case UserError():
            errors = [asdict(problem) for problem in error.problems]
            return Refusal(error.slug, str(error), errors=errors)
        case Retryable():
            return Refusal(Slug.NOT_AVAILABLE_NOW, str(error))
        case HTTPException():
            slug = SLUG_OF.get(error.status_code, Slug.HTTP_ERROR)
            return Refusal(slug, f"{request.method} {request.url.path}: {error.detail}")
        case RequestValidationError():
            return _invalid(error)
        case _:
            raise error


def _invalid(error: RequestValidationError) -> Refusal:
    errors = [
        {"message": item["msg"], "path": ".".join(str(part) for part in item["loc"])}
        for item in error.errors()
    ]
    detail = "; ".join(": ".join(filter(None, (e["path"], e["message"]))) for e in errors)
    return Refusal(Slug.INVALID, detail, errors=errors)
