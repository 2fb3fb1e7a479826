"""Routes that help to write a manifest: check one, propose columns, make one from SQL."""

import asyncio
import json
from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.manifest_models import (
    ConversionAnswer,
    ConvertRequest,
    FindingsAnswer,
    ProposalAnswer,
    ProposeRequest,
    ValidateRequest,
)
from waybill_ingress.adapters.http.models import AcceptedAnswer
from waybill_ingress.adapters.http.operations import accept, refusal_of
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.ports import Answers
from waybill_ingress.app.proposals import Proposals
from waybill_ingress.core.conversions import manifest_of
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals
from waybill_shared.http.request_ids import request_id

WAIT_S: Final = 10.0  # a warm check takes 0.3 s; some may wait before it
CHECK_BODY_BYTES_MAX: Final = 4 * SIZE_BYTES_MAX  # a manifest in JSON may be that much longer
CHECK_RESPONSES: Final[Responses] = {
    200: {"model": FindingsAnswer, "description": "it was checked"},
    202: {
        "model": AcceptedAnswer,
        "description": "it was accepted: `result` of `GET /v1/operations/{id}` has what was found",
    },
    **refusals(
        *OF_BODIES,
        Slug.INVALID,
        Slug.TOO_MANY_CHECKS,
        Slug.INTERNAL,
        Slug.COMMAND_GIVEN_UP,
        Slug.PIPELINE_NOT_READY,
        Slug.NOT_AVAILABLE_NOW,
        members=members_of(Action.VALIDATE),
    ),
}
PROPOSE_BODY_BYTES_MAX: Final = 4_096  # a topic has 249 characters at most
PROPOSE_RESPONSES: Final[Responses] = {
    200: {"model": ProposalAnswer, "description": "columns that take each record looked at"},
    **refusals(
        *OF_BODIES,
        Slug.TOPIC_NOT_FOUND,
        Slug.NOTHING_TO_PROPOSE,
        Slug.INVALID,
        Slug.NOT_AVAILABLE_NOW,
    ),
}
CONVERT_BODY_BYTES_MAX: Final = 2 * SIZE_BYTES_MAX  # a text in JSON is longer
CONVERT_RESPONSES: Final[Responses] = {
    200: {"model": ConversionAnswer, "description": "a manifest that can be applied"},
    **refusals(*OF_BODIES, Slug.INVALID),
}


def validate_router(commands: Commands, answers: Answers) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["pipelines"])

    @router.post(
        "/validate",
        summary="Check a manifest as `apply` does; nothing is made or changed",
        responses=CHECK_RESPONSES,
        openapi_extra=body_as(ValidateRequest),
    )
    async def validate(request: Request) -> Response:
        """Check a manifest. What is wrong with it is the answer, not a refusal: `errors` is empty
        if `apply` would accept it. Only a text that is no manifest at all is refused.
        """
        wanted = body_of(ValidateRequest, await read_body(request, bytes_max=CHECK_BODY_BYTES_MAX))
        operation = await _send_check(commands, request, wanted)
        hold(request)
        reply = await answers.within(caller(request), operation, WAIT_S)
        if reply is None:
            return accept(operation)
        if reply.state is not OperationState.DONE:
            raise refusal_of(reply)
        if reply.result is None:
            raise Refusal(
                Slug.NOT_AVAILABLE_NOW, "what the check has found was not kept: ask again"
            )
        return Response(reply.result, media_type="application/json")

    return router


async def _send_check(commands: Commands, request: Request, wanted: ValidateRequest) -> OperationId:
    """Send the validation. The lines and columns of an object are not reported: nobody
    knows them.
    """
    asking, own, manifest = caller(request), request_id(request), wanted.manifest
    if isinstance(manifest, str):
        return await commands.validate(asking, manifest, own, allow_shared=wanted.allow_shared)
    text = json.dumps(manifest, ensure_ascii=False)
    try:
        return await commands.validate(
            asking, text, own, without_places=True, allow_shared=wanted.allow_shared
        )
    except UserError as error:
        raise error.without_places() from error


def propose_router(proposals: Proposals) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["pipelines"])

    @router.post(
        "/propose",
        summary="Propose the columns of an input from the newest records of a topic",
        responses=PROPOSE_RESPONSES,
        openapi_extra=body_as(ProposeRequest),
    )
    async def propose(request: Request) -> Response:
        """Read the newest committed records, 100 at most, and propose columns. Nothing is created
        or changed.
        """
        wanted = body_of(ProposeRequest, await read_body(request, bytes_max=PROPOSE_BODY_BYTES_MAX))
        hold(request)
        found = await proposals.propose(wanted.topic)
        return answer_with(ProposalAnswer(topic=wanted.topic, **asdict(found)))

    return router


def convert_router() -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["pipelines"])

    @router.post(
        "/convert",
        summary="Make a manifest of tables that are written in SQL",
        responses=CONVERT_RESPONSES,
        openapi_extra=body_as(ConvertRequest),
    )
    async def convert(request: Request) -> Response:
        """Make a manifest from tables in SQL. Each `CREATE TABLE` becomes an input, and a stage
        that writes its rows into the lakehouse. What Waybill cannot keep is refused with its line
        and column. Nothing is created or changed.
        """
        wanted = body_of(ConvertRequest, await read_body(request, bytes_max=CONVERT_BODY_BYTES_MAX))
        manifest = await asyncio.to_thread(manifest_of, wanted.sql, wanted.name)
        return answer_with(ConversionAnswer(manifest=manifest))

    return router
