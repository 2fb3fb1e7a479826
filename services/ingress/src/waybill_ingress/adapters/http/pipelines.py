"""Routes of ingress about pipelines: HTTP in, a command, and its answer if that comes in time."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.formats_page import MANIFESTS
from waybill_ingress.adapters.http.idempotency import KEY, OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.models import AcceptedAnswer
from waybill_ingress.app.commands import Commands, reason_of
from waybill_ingress.app.ports import Answers, Log
from waybill_shared.contract.commands import Beginning, Delete, Restart, Start, Stop
from waybill_shared.contract.errors import Problem, Refusal, UserError
from waybill_shared.contract.events import Reply
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, read_body, refused
from waybill_shared.http.openapi import OF_BODIES, Responses, refusals
from waybill_shared.http.operations import OperationAnswer
from waybill_shared.http.request_ids import request_id

WAIT_S: Final = 1.0  # what needs no driver is done by then
WAIT_S_MAX: Final = 10
OF_WRITES: Final[dict[str, Any]] = {"parameters": [KEY]}
OF_COMMANDS: Final = (
    *OF_KEYS,
    Slug.SUPERSEDED,
    Slug.PIPELINE_GONE,
    Slug.BEGINNING_NEEDED,
    Slug.PLAN_INCOMPATIBLE,
    Slug.INVALID,
    Slug.COMMAND_GIVEN_UP,
    Slug.PIPELINE_NOT_READY,
    Slug.NOT_AVAILABLE_NOW,
)
OF_TARGETS: Final = (Slug.TARGET_SHARED, Slug.KEYS_DIFFER)
APPLY_REFUSALS: Final = refusals(
    *OF_BODIES, *OF_COMMANDS, *OF_TARGETS, members=members_of(Action.APPLY)
)
ACT_REFUSALS: Final = refusals(
    Slug.PIPELINE_NOT_FOUND, *OF_COMMANDS, members=members_of(Action.APPLY)
)
RESPONSES: Final[Responses] = {
    200: {"model": OperationAnswer, "description": "it is done"},
    202: {
        "model": AcceptedAnswer,
        "description": "it was taken, and goes on: `GET /v1/operations/{id}` tells how it went",
    },
}
StartFrom = Annotated[
    Beginning | None,
    Query(
        alias="from",
        description="where stages begin in topics that were deleted and created again: needed if"
        " they read any, of no effect on other topics",
    ),
]
AllowShared = Annotated[
    bool,
    Query(
        description="apply it even if another pipeline writes to the topic or table of a sink, and"
        " not both sinks say `shared: true`",
    ),
]
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=WAIT_S_MAX,
        allow_inf_nan=False,
        description="seconds to wait for it to be done or refused; 0: answer as soon as it is"
        " taken",
    ),
]


class Carrier:
    """Sends a command, and waits for its answer."""

    def __init__(self, answers: Answers, repeats: IdempotentRoutes) -> None:
        self._answers = answers
        self._repeats = repeats

    async def carry_out(
        self,
        request: Request,
        begin: Callable[[Log | None], Awaitable[OperationId]],
        wait: float,
        body: bytes = b"",
    ) -> Response:
        async def tell(operation: OperationId) -> Response:
            return await self._tell(request, operation, wait)

        return await self._repeats.operation(request, body, begin, tell)

    async def _tell(self, request: Request, operation: OperationId, wait: float) -> Response:
        if wait == 0:
            return accept(operation)
        hold(request)
        reply = await self._answers.within(caller(request), operation, wait)
        if reply is None:
            return accept(operation)
        if reply.state is OperationState.DONE:
            return answer_with(OperationAnswer.model_validate(reply))
        return refused(request, refusal_of(reply))


def pipelines_router(commands: Commands, answers: Answers, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"], responses=RESPONSES)

    carry_out = Carrier(answers, repeats).carry_out

    @router.put(
        "",
        summary="Create or change a pipeline by its manifest",
        status_code=202,
        responses=APPLY_REFUSALS,
        openapi_extra={**OF_WRITES, "requestBody": MANIFESTS},
    )
    async def apply(
        request: Request,
        pipeline: str,
        *,
        allow_shared: AllowShared = False,
        wait: Wait = WAIT_S,
    ) -> Response:
        """Compile the manifest before anything is recorded: a manifest that is refused has changed
        nothing. The name in it must be that of the path.
        """
        raw = await read_body(request, bytes_max=SIZE_BYTES_MAX)
        try:
            manifest = raw.decode()
        except UnicodeDecodeError as error:
            problem = Problem(message=f"byte {error.start + 1} is not UTF-8")
            raise UserError([problem]) from error
        asking, own = caller(request), request_id(request)

        async def begin(log: Log | None) -> OperationId:
            return await commands.apply(
                asking, pipeline, manifest, own, log, allow_shared=allow_shared
            )

        return await carry_out(request, begin, wait, raw)

    def add(
        body: Start | Stop | Delete, method: str, path: str, summary: str, description: str
    ) -> None:
        @router.api_route(
            path,
            methods=[method],
            status_code=202,
            summary=summary,
            description=description,
            responses=ACT_REFUSALS,
            openapi_extra=OF_WRITES,
            name=f"{body.action}_pipeline",
        )
        async def act(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
            asking, own = caller(request), request_id(request)

            async def begin(log: Log | None) -> OperationId:
                return await commands.act(asking, pipeline, body, own, log)

            return await carry_out(request, begin, wait)

    add(
        Start(),
        "POST",
        "/start",
        "Start a stopped pipeline from its checkpoint",
        "It continues behind what its sinks have committed. One that runs stays as it is.",
    )
    add(
        Stop(),
        "POST",
        "/stop",
        "Stop a pipeline; what it has not processed waits",
        "Its tokens stay in progress until it is started again.",
    )

    @router.post(
        "/restart",
        status_code=202,
        summary="Run a pipeline with a new driver, also on topics that were created anew",
        responses=ACT_REFUSALS,
        openapi_extra=OF_WRITES,
    )
    async def restart(
        request: Request, pipeline: str, start_from: StartFrom = None, wait: Wait = WAIT_S
    ) -> Response:
        """Restart the pipeline. It continues after what its sinks have committed. Records that were
        not read of a deleted topic end lost.
        """
        asking, own = caller(request), request_id(request)

        async def begin(log: Log | None) -> OperationId:
            body = Restart(start_from=start_from)
            return await commands.act(asking, pipeline, body, own, log)

        return await carry_out(request, begin, wait)

    add(
        Delete(),
        "DELETE",
        "",
        "Delete a pipeline; what it has not processed ends lost",
        "Topics and tables stay as they are. Its name is free again.",
    )
    return router


def refusal_of(reply: Reply) -> Refusal:
    """Return the refusal for a command that has failed. It contains the operation."""
    told = OperationAnswer.model_validate(reply).model_dump(mode="json")
    said = "; ".join(error.message for error in reply.errors)
    return Refusal(reason_of(reply), said or f"{reply.action} failed", **told)


def accept(operation: OperationId) -> Response:
    return answer_with(
        AcceptedAnswer(
            operation=str(operation), pipeline=operation.pipeline, action=operation.action
        ),
        status=202,
        headers={"Location": f"/v1/operations/{operation}"},
    )
