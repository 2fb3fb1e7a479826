"""Routes of status about the past of pipelines: their runs."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from waybill_shared.contract.problems import Slug
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import RunAnswer, RunsAnswer
from waybill_status.adapters.http.pipelines import Cursor, Limit, require_caught_up
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.runs import Runs
from waybill_status.core.pipelines.history import OLDEST
from waybill_status.core.pipelines.runs import PipelineRun

LIMIT: Final = 100
AfterRun = Annotated[
    str, Query(description=f"the id of a run; {OLDEST}: before the oldest that is kept")
]


def runs_router(pipelines: Pipelines, runs: Runs, *, caught_up: Callable[[], bool]) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get(
        "/{pipeline}/runs",
        summary="The runs of a pipeline in 30 days",
        responses={
            200: shown("runs"),
            **refusals(
                Slug.PIPELINE_NOT_FOUND,
                Slug.INVALID,
                Slug.PIPELINE_NOT_READY,
                Slug.NOT_AVAILABLE_NOW,
            ),
        },
    )
    async def get_runs(
        request: Request,
        pipeline: str,
        *,
        after: AfterRun = "",
        limit: Limit = LIMIT,
        cursor: Cursor = "",
    ) -> RunsAnswer:
        """Return the newest runs; each further page has older ones. With `after`, return the runs
        that began after that one; each further page has newer ones. If there is much to search, a
        page may have less than `limit`, or nothing, and still a `next_cursor`. Ids and cursors are
        valid on any `status`, after any restart. `gap` says why runs are missing."""
        key = await pipelines.key_of(caller(request), pipeline)
        require_caught_up(caught_up)
        page = await runs.page(key, limit=limit, after=after, cursor=cursor)
        return RunsAnswer(
            items=[_run(each) for each in page.items],
            next_cursor=None if page.next is None else str(page.next),
            gap=page.gap,
        )

    return router


def _run(run: PipelineRun) -> RunAnswer:
    fields = {each: getattr(run, each) for each in RunAnswer.model_fields}
    error = None if run.error is None else asdict(run.error)
    return RunAnswer.model_validate({**fields, "error": error})
