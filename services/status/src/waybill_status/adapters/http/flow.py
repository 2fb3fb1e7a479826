"""The route that shows how much all pipelines have processed: HTTP in, use case, HTTP out."""

from fastapi import APIRouter, Request

from waybill_shared.contract.problems import Slug
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.app.pipelines.progress import ProgressReader
from waybill_status.core.pipelines.flow import Flow


def flow_router(progress: ProgressReader) -> APIRouter:
    router = APIRouter(prefix="/v1/flow", tags=["pipelines"])

    @router.get(
        "",
        summary="How much has come into each pipeline, and how much of it has arrived",
        responses={200: shown("flow"), **refusals(Slug.NOT_AVAILABLE_NOW)},
    )
    async def get_flow(request: Request) -> Flow:
        """Return the numbers of all pipelines, counted in offsets, a second old at most. Two
        answers make a rate."""
        return await progress.all(caller(request))

    return router
