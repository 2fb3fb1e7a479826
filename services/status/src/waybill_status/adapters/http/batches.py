"""The route of status about the batches of a stage."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from waybill_shared.contract.problems import Slug
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import BatchesAnswer
from waybill_status.adapters.http.pipelines import Cursor
from waybill_status.app.pipelines.batches import Batches
from waybill_status.core.pipelines.history import OLDEST

LIMIT: Final = 100
LIMIT_MAX: Final = 500  # each may have a hundred ranges
AfterBatch = Annotated[
    str, Query(description=f"the id of a batch; {OLDEST}: before the oldest that is kept")
]
BatchLimit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="of one page")]


def batches_router(batches: Batches) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get(
        "/{pipeline}/stages/{stage}/batches",
        summary="The batches of a stage in 30 days",
        responses={
            200: shown("batches"),
            **refusals(
                Slug.PIPELINE_NOT_FOUND,
                Slug.STAGE_NOT_FOUND,
                Slug.INVALID,
                Slug.PIPELINE_NOT_READY,
                Slug.NOT_AVAILABLE_NOW,
            ),
        },
    )
    async def get_batches(
        request: Request,
        pipeline: str,
        stage: str,
        *,
        after: AfterBatch = "",
        limit: BatchLimit = LIMIT,
        cursor: Cursor = "",
    ) -> BatchesAnswer:
        """Return the newest batches; each further page has older ones. With `after`, return the
        batches after that one; each further page has newer ones. If there is much to search, a page
        may have less than `limit`, or nothing, and still a `next_cursor`. `gap` says why batches
        are missing. A batch that failed is not among them: its error is that of its run."""
        page = await batches.page(
            caller(request), pipeline, stage, limit=limit, after=after, cursor=cursor
        )
        return BatchesAnswer(
            items=list(page.items),
            next_cursor=None if page.next is None else str(page.next),
            gap=page.gap,
        )

    return router
