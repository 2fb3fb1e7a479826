"""Routes of Feldera that write, for its clients as they are. Decides nothing.

`/v0` comes in, the use cases of `/v1` do the work, and Feldera's answers go out.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from waybill_ingress.adapters.http.bodies import receive
from waybill_ingress.adapters.http.idempotency import KEY, OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.models import FelderaTokenAnswer
from waybill_ingress.adapters.http.operations import OF_WRITES, RESPONSES, Carrier
from waybill_ingress.adapters.http.records import location_of, write_once
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.connector_tokens import ConnectorTokens
from waybill_ingress.app.ports import Answers, Log
from waybill_ingress.app.records import Receipt, Records, as_json
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.forms import invalid
from waybill_ingress.core.bodies.packed import BodyLimits
from waybill_ingress.core.feldera.options import ACCEPTED, read_options
from waybill_ingress.core.keys import HEADER
from waybill_shared.contract.commands import (
    Delete,
    Pause,
    PlainChange,
    Resume,
    Start,
    Stop,
    StopMode,
)
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.names import name_meant
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, refused
from waybill_shared.http.feldera import errors
from waybill_shared.http.openapi import OF_BODIES
from waybill_shared.http.plain_routes import PlainRoute
from waybill_shared.http.request_ids import request_id

INITIAL: Final = ("running", "paused")
WAIT_S: Final = 10.0  # after that the client asks for the state itself
OF_UPDATES: Final[list[dict[str, Any]]] = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "schema": {"type": "string", "enum": list(accepted), "default": accepted[0]},
    }
    for name, accepted in ACCEPTED.items()
]
BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/json": {"schema": {}, "example": {"insert": {"order_id": 1}}},
        "text/csv": {"schema": {"type": "string"}, "example": "1,ada"},
    },
}
INGRESS_ERRORS: Final = errors(
    *OF_BODIES,
    *OF_KEYS,
    Slug.RECORDS_REJECTED,
    Slug.INVALID,
    Slug.PIPELINE_NOT_FOUND,
    Slug.INPUT_NOT_FOUND,
    Slug.TOO_MANY_RECORDS,
    Slug.UNSUPPORTED_ENCODING,
    Slug.UNSUPPORTED_MEDIA_TYPE,
    Slug.BODY_NOT_PACKED,
    Slug.RECORDS_REFUSED_BY_KAFKA,
    Slug.WRITTEN_PERHAPS,
    Slug.PIPELINE_NOT_READY,
    Slug.INPUT_NOT_READY,
    Slug.TOPIC_RECREATED,
    Slug.NOT_AVAILABLE_NOW,
)
CONNECTOR_ERRORS: Final = errors(
    Slug.PIPELINE_NOT_FOUND,
    Slug.INPUT_NOT_FOUND,
    Slug.CONNECTOR_NOT_FOUND,
    Slug.PIPELINE_NOT_READY,
    Slug.INPUT_NOT_READY,
    Slug.TOPIC_RECREATED,
    Slug.NOT_AVAILABLE_NOW,
)
OF_COMMANDS: Final = (
    Slug.PIPELINE_NOT_FOUND,
    Slug.SUPERSEDED,
    Slug.PIPELINE_GONE,
    Slug.BEGINNING_NEEDED,
    *OF_KEYS,
    Slug.PLAN_INCOMPATIBLE,
    Slug.TOO_MANY_COMMANDS,
    Slug.COMMAND_GIVEN_UP,
    Slug.PIPELINE_NOT_READY,
    Slug.NOT_AVAILABLE_NOW,
)
OF_ACTS: Final[dict[str, Any]] = {
    "status_code": 202,
    "responses": {**RESPONSES, **errors(*OF_COMMANDS)},
    "openapi_extra": OF_WRITES,
}
START_ANSWERS: Final = {**RESPONSES, **errors(Slug.INVALID, *OF_COMMANDS)}
NAME_ERRORS: Final = errors(Slug.PIPELINE_NOT_FOUND, Slug.PIPELINE_NOT_READY)


def feldera_router(
    records: Records,
    tokens: TokenIssuer,
    registry: Registry,
    repeats: IdempotentRoutes,
    *,
    limits: BodyLimits,
) -> APIRouter:
    router = APIRouter(prefix="/v0/pipelines/{pipeline}", tags=["feldera"], route_class=PlainRoute)

    @router.post(
        "/ingress/{table}",
        summary="Send records as clients of Feldera do",
        response_model=FelderaTokenAnswer,
        responses=INGRESS_ERRORS,
        openapi_extra={"parameters": [KEY, *OF_UPDATES], "requestBody": BODY},
    )
    async def ingress(request: Request, pipeline: str, table: str) -> Response:
        """Read the body by `format` alone. If some records are refused, the answer is 400
        `ParseErrors`, and its `details.token` is for those that were accepted.
        """
        options = read_options(request.query_params.multi_items())
        record = await registry.pipeline(caller(request).tenant, pipeline)
        name = name_meant(table, record.root_inputs())
        most = limits.of_whole() if HEADER.lower() in request.headers else limits
        with await receive(request, most) as body:
            asking = caller(request)
            send = partial(
                records.write, asking, pipeline, name, body, options.read, atomic=options.array
            )

            async def write(log: Log | None) -> tuple[Receipt | None, Response]:
                nothing = body.small and b"".join(body.pieces()).strip() in options.nothing
                receipt = None if nothing else await _write(send, log)
                if receipt is None:
                    sealed = await tokens.for_nothing(asking, pipeline, name)
                    return None, _answer(sealed.token)
                return receipt, _answer_of(request, receipt)

            return await write_once(repeats, request, body, (pipeline, name), write)

    return router


async def _write(send: Callable[..., Awaitable[Receipt]], log: Log | None) -> Receipt | None:
    """Write the records of a body. Return None if it has none."""
    try:
        return await _sure(partial(send, log=log), whole=log is not None)
    except Refusal as refusal:
        if refusal.slug is not Slug.NO_RECORDS:
            raise
        return None


async def _sure(write: Callable[..., Awaitable[Receipt]], *, whole: bool) -> Receipt:
    """Write the records. Answer 503 only if nothing is written, because the client then sends
    again.

    `whole`: if it fails, nothing counts.
    """
    started: list[bool] = []
    try:
        return await write(on_start=lambda: started.append(True))
    except Retryable as error:
        if whole or not started:
            raise
        raise Refusal(Slug.WRITTEN_PERHAPS, str(error)) from error
    except Refusal as error:
        if whole or not started or error.slug.status < 500:
            raise
        raise Refusal(Slug.WRITTEN_PERHAPS, error.detail, **error.members) from error


def _answer_of(request: Request, receipt: Receipt) -> Response:
    if not receipt.rejected:
        return _answer(receipt.token)
    count = len(receipt.rejected)
    detail = f"Errors parsing input data ({count} error{'s' if count != 1 else ''})"
    refusal = Refusal(
        Slug.RECORDS_REJECTED, detail, token=receipt.token, rejected=as_json(receipt.rejected)
    )
    answer = refused(request, refusal)
    answer.headers.update(location_of(receipt.token))
    return answer


def _answer(token: str) -> Response:
    return answer_with(FelderaTokenAnswer(token=token), headers=location_of(token))


def feldera_connectors_router(connectors: ConnectorTokens, registry: Registry) -> APIRouter:
    router = APIRouter(prefix="/v0/pipelines/{pipeline}", tags=["feldera"])

    @router.get(
        "/tables/{table}/connectors/{connector}/completion_token",
        summary="Get the token for all that a connector has written by now",
        response_model=FelderaTokenAnswer,
        responses=CONNECTOR_ERRORS,
    )
    async def completion_token(
        request: Request, pipeline: str, table: str, connector: str
    ) -> Response:
        """Return a token. `POST /v1/tokens` with `connector` also says whether the connector is
        done.
        """
        record = await registry.pipeline(caller(request).tenant, pipeline)
        name = name_meant(table, record.root_inputs())
        sealed, _ = await connectors.issue(caller(request), pipeline, name, connector)
        return _answer(sealed.token)

    return router


def feldera_commands_router(
    commands: Commands, answers: Answers, registry: Registry, repeats: IdempotentRoutes
) -> APIRouter:
    router = APIRouter(prefix="/v0/pipelines/{pipeline}", tags=["feldera"])
    carrier = Carrier(answers, repeats)

    async def carry_out(request: Request, pipeline: str, body: PlainChange) -> Response:
        begin = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, begin, WAIT_S)

    @router.post("/start", summary="Start a pipeline", **{**OF_ACTS, "responses": START_ANSWERS})
    async def start(request: Request, pipeline: str, initial: str = "running") -> Response:
        """Start the pipeline. It continues after what its sinks have committed. With
        `initial=paused` it begins no batch.
        """
        if initial not in INITIAL:
            hint = f"one of {', '.join(INITIAL)}"
            raise invalid("initial", f"initial={initial:.80} is not accepted", hint)
        return await carry_out(request, pipeline, Start(paused=initial == "paused"))

    @router.post("/pause", summary="Pause a pipeline", **OF_ACTS)
    async def feldera_pause(request: Request, pipeline: str) -> Response:
        """Let the running batch end, and begin no other. Its driver stays."""
        return await carry_out(request, pipeline, Pause())

    @router.post("/resume", summary="Let a paused pipeline continue", **OF_ACTS)
    async def feldera_resume(request: Request, pipeline: str) -> Response:
        """Begin batches again."""
        return await carry_out(request, pipeline, Resume())

    @router.post("/stop", summary="Stop a pipeline", **OF_ACTS)
    async def feldera_stop(request: Request, pipeline: str, *, force: bool = False) -> Response:
        """Stop the pipeline after its running batch, or with `force` at once. What it has not
        processed waits.
        """
        mode = StopMode.FORCE if force else StopMode.CHECKPOINT
        return await carry_out(request, pipeline, Stop(mode=mode))

    @router.delete("", summary="Delete a pipeline", **OF_ACTS)
    async def feldera_delete(request: Request, pipeline: str) -> Response:
        """Delete the pipeline. Topics and tables stay as they are."""
        return await carry_out(request, pipeline, Delete())

    _add_without_effect(router, registry)
    return router


def _add_without_effect(router: APIRouter, registry: Registry) -> None:
    """Add the routes that only check that there is such a pipeline."""

    @router.post(
        "/clear",
        summary="Does nothing: there is no storage of its own to clear",
        responses=NAME_ERRORS,
    )
    async def clear(request: Request, pipeline: str) -> Response:
        """Return without effect: what a pipeline has read and written is not forgotten."""
        await registry.pipeline(caller(request).tenant, pipeline)
        return JSONResponse({})

    @router.post(
        "/dismiss_error",
        summary="Does nothing: a start dismisses the last error",
        responses=NAME_ERRORS,
    )
    async def dismiss_error(request: Request, pipeline: str) -> Response:
        """Return without effect, for clients that call it before they start a pipeline."""
        await registry.pipeline(caller(request).tenant, pipeline)
        return JSONResponse({})
