"""The route that adds partitions to the topic of an input."""

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.manifest_models import GrowAnswer, GrowRequest
from waybill_ingress.app.growth import InputGrowth
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals

BODY_BYTES_MAX: Final = 4_096  # one number
RESPONSES: Final[Responses] = {
    200: {"model": GrowAnswer, "description": "the topic has so many partitions"},
    **refusals(
        *OF_BODIES,
        Slug.PIPELINE_NOT_FOUND,
        Slug.PIPELINE_NOT_READY,
        Slug.INPUT_NOT_FOUND,
        Slug.INPUT_NOT_READY,
        Slug.TOPIC_RECREATED,
        Slug.INVALID,
        Slug.NOT_AVAILABLE_NOW,
    ),
}
Confirmed = Annotated[
    bool, Query(alias="yes", description="keys may move to other partitions; else it is refused")
]


def growth_router(growth: InputGrowth) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"])

    @router.post(
        "/inputs/{name}/grow",
        summary="Add partitions to the topic of an input",
        responses=RESPONSES,
        openapi_extra=body_as(GrowRequest),
    )
    async def grow(
        request: Request,
        pipeline: str,
        name: str,
        confirmed: Confirmed = False,  # noqa: FBT002 - a parameter of the query
    ) -> Response:
        """Let the topic of an input have so many partitions, never less than now. From then on,
        records of a key may go to another partition than earlier ones, so their order is not kept.
        Every stage reads new partitions from their first record. To ask again changes nothing.
        """
        wanted = body_of(GrowRequest, await read_body(request, bytes_max=BODY_BYTES_MAX))
        hold(request)
        grown = await growth.grow(
            caller(request), pipeline, name, wanted.partitions, confirmed=confirmed
        )
        return answer_with(GrowAnswer(**asdict(grown)))

    return router
