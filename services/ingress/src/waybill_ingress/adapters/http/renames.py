"""Route that calls a pipeline otherwise."""

from functools import partial
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.manifest_models import RenameRequest
from waybill_ingress.adapters.http.operations import (
    OF_COMMANDS,
    OF_WRITES,
    RESPONSES,
    WAIT_S,
    Carrier,
    Wait,
)
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.ports import Answers
from waybill_ingress.app.renames import Renames
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_shared.http.app import caller, hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, body_as, refusals
from waybill_shared.http.request_ids import request_id

BYTES_MAX: Final = 4_096  # one name
RENAME_REFUSALS: Final = refusals(
    Slug.PIPELINE_NOT_FOUND,
    Slug.NAME_IN_USE,
    *OF_BODIES,
    *OF_COMMANDS,
    members=members_of(Action.APPLY),
)


def renames_router(
    commands: Commands, renames: Renames, answers: Answers, repeats: IdempotentRoutes
) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"], responses=RESPONSES)
    carrier = Carrier(answers, repeats)

    @router.post(
        "/rename",
        summary="Call a pipeline otherwise; its tokens, fences and offsets stay",
        status_code=202,
        responses=RENAME_REFUSALS,
        openapi_extra={**OF_WRITES, **body_as(RenameRequest)},
    )
    async def rename(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Let the pipeline go on under another name, as a new generation. Its former names still
        count in tokens, in `through` and in watches; elsewhere they are answered with `renamed`. No
        other pipeline gets them before this one is deleted. One that is stopped or has failed stays
        so. The same request again changes nothing.
        """
        raw = await read_body(request, bytes_max=BYTES_MAX)
        asked = (caller(request), pipeline, body_of(RenameRequest, raw).to, request_id(request))
        hold(request)
        begin, prepare = partial(commands.rename, *asked), partial(renames.reserve, *asked)
        return await carrier.carry_out(request, begin, wait, raw, prepare=prepare)

    return router
