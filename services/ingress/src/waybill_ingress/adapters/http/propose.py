"""The route that proposes the columns of an input: HTTP in, the columns out."""

from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.models import ProposalAnswer, ProposeRequest
from waybill_ingress.app.proposals import Proposals
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals

BODY_BYTES_MAX: Final = 4_096  # a topic has 249 characters at most
RESPONSES: Final[Responses] = {
    200: {"model": ProposalAnswer, "description": "columns that take each record looked at"},
    **refusals(
        *OF_BODIES,
        Slug.TOPIC_NOT_FOUND,
        Slug.NOTHING_TO_PROPOSE,
        Slug.INVALID,
        Slug.NOT_AVAILABLE_NOW,
    ),
}


def propose_router(proposals: Proposals) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["pipelines"])

    @router.post(
        "/propose",
        summary="Propose the columns of an input from the newest records of a topic",
        responses=RESPONSES,
        openapi_extra=body_as(ProposeRequest),
    )
    async def propose(request: Request) -> Response:
        """Read the newest committed records, 100 at most, and propose columns. Nothing is created
        or changed.
        """
        wanted = body_of(ProposeRequest, await read_body(request, bytes_max=BODY_BYTES_MAX))
        hold(request)
        found = await proposals.propose(wanted.topic)
        return answer_with(ProposalAnswer(topic=wanted.topic, **asdict(found)))

    return router
