"""The route for maintenance of a sink's table: HTTP in, a command, and what was done."""

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.models import AcceptedAnswer
from waybill_ingress.adapters.http.operations import OF_COMMANDS, OF_WRITES, WAIT_S, Carrier, Wait
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.ports import Answers
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_shared.http.app import caller
from waybill_shared.http.examples import example
from waybill_shared.http.openapi import Responses, refusals
from waybill_shared.http.operations import OperationAnswer
from waybill_shared.http.request_ids import request_id

RESPONSES: Final[Responses] = {
    200: {
        "model": OperationAnswer,
        "description": "it is done: `result` says what, in numbers",
        "content": {"application/json": {"example": example("ingress/maintained")}},
    },
    202: {
        "model": AcceptedAnswer,
        "description": "it was accepted, and goes on: `GET /v1/operations/{id}` says how it went",
    },
    **refusals(
        Slug.PIPELINE_NOT_FOUND,
        Slug.TOO_MANY_CHECKS,
        Slug.INTERNAL,
        *OF_COMMANDS,
        members=members_of(Action.APPLY, Action.MAINTAIN),
    ),
}
DryRun = Annotated[
    bool, Query(description="only say what would be done: nothing is changed or deleted")
]


def maintain_router(commands: Commands, answers: Answers, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"])
    carry_out = Carrier(answers, repeats).carry_out

    @router.post(
        "/sinks/{sink}/maintain",
        status_code=202,
        summary="Keep the table of a sink in order, at once",
        responses=RESPONSES,
        openapi_extra=OF_WRITES,
    )
    async def maintain(
        request: Request,
        pipeline: str,
        sink: str,
        dry_run: DryRun = False,  # noqa: FBT002 - a flag of the address
        wait: Wait = WAIT_S,
    ) -> Response:
        """Do every task that the manifest names under `maintenance`, due or not. The pipeline may
        run meanwhile, or be stopped. `result` of the operation has what was done, in numbers.
        """
        asking, own = caller(request), request_id(request)
        begin = partial(commands.maintain, asking, pipeline, sink, own, dry_run=dry_run)
        return await carry_out(request, begin, wait)

    return router
