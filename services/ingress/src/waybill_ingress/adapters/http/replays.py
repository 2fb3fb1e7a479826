"""The route that sends dead letters again: HTTP in, a token out."""

from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.idempotency import OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.models import ReplayAnswer, ReplayRequest
from waybill_ingress.adapters.http.records import OF_WRITES, location_of
from waybill_ingress.app.replays import Replays
from waybill_ingress.core.dead_letters import ID_CHARACTERS_MAX, LETTERS_MAX
from waybill_ingress.core.if_match import read_demand
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals
from waybill_shared.http.request_ids import request_id

BODY_BYTES_MAX: Final = 2 * LETTERS_MAX * ID_CHARACTERS_MAX
RESPONSES: Final[Responses] = {
    200: {"model": ReplayAnswer, "description": "they are in their topics again"},
    **refusals(
        *OF_BODIES,
        *OF_KEYS,
        Slug.BAD_IF_MATCH,
        Slug.PIPELINE_NOT_FOUND,
        Slug.DEAD_LETTER_NOT_FOUND,
        Slug.SOURCE_NOT_AN_INPUT,
        Slug.SOURCE_RECREATED,
        Slug.DEAD_LETTER_GONE,
        Slug.TOO_MANY_DEAD_LETTERS,
        Slug.INVALID,
        Slug.RECORDS_REFUSED_BY_KAFKA,
        Slug.PIPELINE_NOT_READY,
        Slug.PIPELINE_BEHIND,
        Slug.INPUT_NOT_READY,
        Slug.NOT_AVAILABLE_NOW,
    ),
}


def replays_router(replays: Replays, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["records"])

    @router.post(
        "/dead-letters/replay",
        summary="Send dead letters to the topics that they come from, and get a token for them",
        responses=RESPONSES,
        openapi_extra={**OF_WRITES, **body_as(ReplayRequest)},
    )
    async def replay(request: Request, pipeline: str) -> Response:
        """Send these dead letters to their topics again. Key, value and headers are those of the
        record that died, and `waybill-replay-of` is added. All of them are sent or none, and each
        once, however often it is asked for. Every stage, sink and pipeline that reads the topic
        gets them: also a sink that has such a record.
        """
        demand = read_demand(request.headers.get("if-match"))
        body = await read_body(request, bytes_max=BODY_BYTES_MAX)
        wanted = body_of(ReplayRequest, body)
        hold(request)  # another request for the same pipeline may come first

        async def send(id: str | None, resumed: bool) -> Response:
            done = await replays.replay(
                caller(request),
                pipeline,
                wanted.ids,
                again=wanted.again,
                request_id=id or request_id(request),
                resumed=resumed,
                demand=demand,
            )
            answer = ReplayAnswer(**asdict(done), request_id=request_id(request))
            return answer_with(answer, headers=location_of(done.token))

        return await repeats.once_by_id(request, body, send)

    return router
