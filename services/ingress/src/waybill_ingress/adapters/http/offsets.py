"""The routes that set where the next run of a pipeline begins: HTTP in, a command, its answer."""

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.manifest_models import OffsetsRequest
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
from waybill_shared.contract.beginnings import FORMS, Begin, read_beginning
from waybill_shared.contract.commands import SetOffsets
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_shared.http.app import caller, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, body_as, refusals
from waybill_shared.http.request_ids import request_id

BODY_BYTES_MAX: Final = 16_384  # a list of offsets
MEMBERS: Final = members_of(Action.APPLY)
REFUSALS: Final = refusals(Slug.PIPELINE_NOT_FOUND, *OF_COMMANDS, members=MEMBERS)
SET_REFUSALS: Final = refusals(Slug.PIPELINE_NOT_FOUND, *OF_BODIES, *OF_COMMANDS, members=MEMBERS)
Confirmed = Annotated[
    bool,
    Query(
        alias="yes", description="rows may be written again, or skipped: see `rewind_not_confirmed`"
    ),
]


def offsets_router(commands: Commands, answers: Answers, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(
        prefix="/v1/pipelines/{pipeline}/offsets", tags=["pipelines"], responses=RESPONSES
    )
    carrier = Carrier(answers, repeats)

    @router.patch(
        "",
        summary="Set where the next run of a pipeline begins",
        status_code=202,
        responses=SET_REFUSALS,
        openapi_extra={**OF_WRITES, **body_as(OffsetsRequest)},
    )
    async def set_offsets(
        request: Request,
        pipeline: str,
        confirmed: Confirmed = False,  # noqa: FBT002 - a parameter of the query
        wait: Wait = WAIT_S,
    ) -> Response:
        """Let the next run begin there, as `restart` with `from` does, and start nothing. It is
        `pending` in `GET …/offsets` until a run has done it. Only where no run goes on: the
        pipeline is Stopped, Finished or Failed.
        """
        raw = await read_body(request, bytes_max=BODY_BYTES_MAX)
        wanted = body_of(OffsetsRequest, raw)
        begin = begin_of(wanted.start_from)
        body = SetOffsets(
            start_from=begin.word,
            at=begin.since(commands.now_ms()),
            offsets=begin.offsets,
            stage=wanted.stage,
            confirmed=confirmed,
        )
        send = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, send, wait, raw)

    @router.delete(
        "",
        summary="Take back where the next run was to begin",
        status_code=202,
        responses=REFUSALS,
        openapi_extra=OF_WRITES,
    )
    async def reset_offsets(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Forget all offsets that no run has done yet: the next run begins where the sinks are.
        What a sink has done already stays. Only where no run goes on, as for PATCH.
        """
        send = partial(commands.act, caller(request), pipeline, SetOffsets(), request_id(request))
        return await carrier.carry_out(request, send, wait)

    return router


def begin_of(text: str | None) -> Begin:
    """Return where to begin. Raise UserError if the text does not say it."""
    try:
        return Begin() if text is None else read_beginning(text)
    except ValueError as error:
        raise UserError([Problem(message=f"from: {error}", hint=f"one of: {FORMS}")]) from error
