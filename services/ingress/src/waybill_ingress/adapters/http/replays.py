"""The route that replays dead letters: HTTP in, a token out."""

from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.idempotency import OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.models import ReplayAnswer, ReplayRequest
from waybill_ingress.adapters.http.records import OF_WRITES, location_of
from waybill_ingress.app.replays import Replays
from waybill_ingress.core.dead_letters import ID_CHARACTERS_MAX, LETTERS_MAX
from waybill_ingress.core.edits import EDITED_BYTES_MAX
from waybill_ingress.core.if_match import read_demand
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals
from waybill_shared.http.request_ids import request_id

ESCAPED: Final = 6  # bytes that JSON may need for one byte of a record
BODY_BYTES_MAX: Final = 2 * LETTERS_MAX * ID_CHARACTERS_MAX + ESCAPED * EDITED_BYTES_MAX
RESPONSES: Final[Responses] = {
    200: {"model": ReplayAnswer, "description": "their stages process them again"},
    **refusals(
        *OF_BODIES,
        *OF_KEYS,
        Slug.BAD_IF_MATCH,
        Slug.PIPELINE_NOT_FOUND,
        Slug.DEAD_LETTER_NOT_FOUND,
        Slug.SINKS_GONE,
        Slug.REPLAY_REPLACES,
        Slug.REPLAY_NOT_CONFIRMED,
        Slug.REPLAYED_BEFORE,
        Slug.DEAD_LETTER_GONE,
        Slug.TOO_MANY_DEAD_LETTERS,
        Slug.RECORDS_REJECTED,
        Slug.INVALID,
        Slug.PIPELINE_NOT_READY,
        Slug.PIPELINE_BEHIND,
        Slug.NOT_AVAILABLE_NOW,
    ),
}


def replays_router(replays: Replays, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["records"])

    @router.post(
        "/dead-letters/replay",
        summary="Replay dead letters in the stages where they died, and get a token for them",
        responses=RESPONSES,
        openapi_extra={**OF_WRITES, **body_as(ReplayRequest)},
    )
    async def replay(request: Request, pipeline: str) -> Response:
        """Let the stages where these letters died process their records again, and write what comes
        of it into the sinks that lack it, and no others. All of them are replayed or none, and each
        once, however often it is asked for. The answer names the sinks. With `edited` the stage
        processes the edited record in place of the one that died.
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
                confirmed=wanted.yes,
                edit=None if wanted.edited is None else wanted.edited.edit(),
                request_id=id or request_id(request),
                resumed=resumed,
                demand=demand,
            )
            answer = ReplayAnswer(**asdict(done), request_id=request_id(request))
            return answer_with(answer, headers=location_of(done.token))

        return await repeats.once_by_id(request, body, send)

    return router
