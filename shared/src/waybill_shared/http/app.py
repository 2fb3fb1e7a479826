"""What the HTTP services have in common: problems, request ids, keys, health, metrics, version.

Builds the FastAPI application around a service's routes; decides nothing about the service.
"""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from typing import Any, Final, Protocol

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.errors import (
    NotAllowed,
    Retryable,
    TokenExpired,
    TokenRefused,
    UserError,
)
from waybill_shared.contract.events import Problem as PlacedProblem
from waybill_shared.contract.problems import HEADERS_OF, PROBLEM_JSON, problem_body
from waybill_shared.contract.routes import scope_for
from waybill_shared.contract.version import VERSION
from waybill_shared.http.openapi import describe_keys
from waybill_shared.http.plain_routes import serve_plainly
from waybill_shared.process import metrics
from waybill_shared.process.health import Health, ready

NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
EXPIRED_HINT = "a new token for the pipeline's input covers all that it holds now"
UNKNOWN_HINT = "give all of it, to the Waybill that made it: it may be cut short or of another one"


class Problem(Exception):
    """An answer that is not a success, in the form of RFC 9457."""

    def __init__(self, status: int, slug: str, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.members = members


class Lifespan(Protocol):
    def __call__(self, app: FastAPI) -> AbstractAsyncContextManager[None]: ...


def create_app(
    service: str,
    routers: Sequence[APIRouter],
    health: Health,
    lifespan: Lifespan | None = None,
    keys: KeysInForce | None = None,
) -> FastAPI:
    """Without `keys` whoever reaches the port may do everything."""
    guard = _requires(keys) if keys else None
    app = FastAPI(
        title=f"Waybill {service}",
        version=VERSION,
        lifespan=lifespan,
        dependencies=[Depends(guard)] if guard else [],
        telemetry=NO_TELEMETRY,
    )
    if keys:
        health.checks["api_keys"] = keys.check
    for router in routers:
        app.include_router(router)
    serve_plainly(app, routers, guard)
    _add_operations(app, service, health)
    describe_keys(app)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(UserError, _on_user_error)
    app.add_exception_handler(Retryable, _on_retryable)
    app.add_exception_handler(NotAllowed, _on_not_allowed)
    app.add_exception_handler(TokenRefused, _on_bad_token)
    app.add_exception_handler(TokenExpired, _on_bad_token)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_fault)
    app.add_middleware(RequestIds)
    return app


def request_id(request: Request) -> str:
    """The id of this request: the caller's, if one was sent, else ours."""
    return str(request.scope["waybill.request_id"])


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """The whole body; 413 as soon as it is known to be larger, with or without a Content-Length."""
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else 0
    pieces: list[bytes] = []
    if size <= bytes_max:
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > bytes_max:
                break
            pieces.append(piece)
    if size > bytes_max:
        detail = f"the body is larger than {bytes_max} bytes: send it in several requests"
        raise Problem(413, "body_too_large", detail, bytes_max=bytes_max)
    return b"".join(pieces)


class RequestIds:
    """Gives every request an id, echoes it, and counts the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = dict(scope["headers"]).get(b"x-request-id", b"")[:128].decode("latin-1")
        own = sent if sent.isprintable() and sent else f"{random.getrandbits(128):032x}"
        scope["waybill.request_id"] = own
        started = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", own.encode("latin-1"))]
                _measure(scope, message["status"], time.perf_counter() - started)
            await send(message)

        await self.app(scope, receive, send_with_id)


def _measure(scope: Scope, status: int, elapsed_s: float) -> None:
    """Paths and methods that no route has are one each: callers may make up any number of them."""
    matched = scope.get("route")
    route = getattr(matched, "path", "unmatched")
    known = scope["method"] in (getattr(matched, "methods", None) or ())
    method = scope["method"] if known else "other"
    metrics.count("waybill_http_requests_total", route=route, method=method, status=str(status))
    if b"wait=" not in scope["query_string"]:
        metrics.observe("waybill_http_request_seconds", elapsed_s, route=route, method=method)


def token_problem(error: TokenRefused | TokenExpired) -> dict[str, Any]:
    """One text for all that is no token of ours; another for a genuine one past its life."""
    if isinstance(error, TokenExpired):
        detail = "the token is older than 30 days"
        return problem_body(410, "token_expired", detail, hint=EXPIRED_HINT)
    return problem_body(404, "token_not_found", "no such token", hint=UNKNOWN_HINT)


def problem_response(status: int, slug: str, detail: str, **members: object) -> JSONResponse:
    body = problem_body(status, slug, detail, **members)
    return JSONResponse(
        body, status_code=status, media_type=PROBLEM_JSON, headers=HEADERS_OF.get(status)
    )


def problems_as_json(problems: Sequence[PlacedProblem]) -> list[dict[str, Any]]:
    return [asdict(problem) for problem in problems]


def _requires(keys: KeysInForce) -> Callable[[Request], Awaitable[None]]:
    """Asks of each request the key that its route needs. It looks at the route that was found and
    never at the path: what a path means is decided once."""

    async def require(request: Request) -> None:
        scope = scope_for(request.method, request.scope["route"].path)
        if scope is not None:
            keys.require(request.headers.get("authorization", ""), scope)

    return require


def _add_operations(app: FastAPI, service: str, health: Health) -> None:
    @app.get("/healthz", tags=["operations"])
    async def healthz() -> Response:
        health.beat()  # answering is this loop's beat
        return JSONResponse({"alive": True})

    @app.get("/readyz", tags=["operations"])
    def readyz() -> Response:
        readiness = health.readiness()
        return JSONResponse(readiness, status_code=200 if ready(readiness) else 503)

    @app.get("/version", tags=["operations"])
    async def version() -> dict[str, str]:
        return {"service": service, "version": VERSION}

    @app.get("/metrics", tags=["operations"], include_in_schema=False)
    def metrics_text() -> Response:
        text = metrics.text_of(service, health.readiness())
        return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})


def _answer(request: Request, status: int, slug: str, detail: str, **members: object) -> Response:
    return problem_response(status, slug, detail, **members, request_id=request_id(request))


def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer(request, error.status, error.slug, error.detail, **error.members)


def _on_user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    errors = problems_as_json(error.problems)
    return _answer(request, 422, "invalid", str(error), errors=errors)


def _on_retryable(request: Request, error: Exception) -> Response:
    return _answer(request, 503, "not_available_now", str(error))


def _on_not_allowed(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotAllowed)
    return _answer(request, error.status, error.slug, str(error), **error.members)


def _on_bad_token(request: Request, error: Exception) -> Response:
    assert isinstance(error, TokenRefused | TokenExpired)
    body = {**token_problem(error), "request_id": request_id(request)}
    return JSONResponse(body, status_code=body["status"], media_type=PROBLEM_JSON)


def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    slugs = {404: "not_found", 405: "method_not_allowed"}
    slug = slugs.get(error.status_code, "http_error")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return _answer(request, error.status_code, slug, detail)


def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"message": item["msg"], "path": ".".join(str(part) for part in item["loc"])}
        for item in error.errors()
    ]
    detail = "; ".join(": ".join(filter(None, (e["path"], e["message"]))) for e in errors)
    return _answer(request, 422, "invalid", detail, errors=errors)


def _on_disconnect(request: Request, error: Exception) -> Response:
    """Nobody is left to read this."""
    return Response(status_code=400)


def _on_fault(request: Request, error: Exception) -> Response:
    """Our fault: Starlette raises the error again after this answer, and the server logs it."""
    own = request_id(request)
    detail = f"this is a fault of the service; its log names request {own}"
    answer = problem_response(500, "internal", detail, request_id=own)
    answer.headers["X-Request-Id"] = own  # this answer is given outside of RequestIds
    return answer
