"""The route for the log of a pipeline. The runner has the log, and is asked by a command."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from waybill_ingress.adapters.http.models import LogsAnswer
from waybill_ingress.adapters.http.operations import refusal_of
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.ports import Answers
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.http.app import caller, hold
from waybill_shared.http.openapi import refusals
from waybill_shared.http.request_ids import request_id

WAIT_S: Final = 10.0
LINES: Final = 200
LINES_MAX: Final = 1_000
Lines = Annotated[int, Query(ge=1, le=LINES_MAX, description="of the end of the log")]


def logs_router(commands: Commands, answers: Answers) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"])

    @router.get(
        "/logs",
        summary="The newest lines of the log of a pipeline's driver",
        responses=refusals(
            Slug.PIPELINE_NOT_FOUND,
            Slug.PIPELINE_GONE,
            Slug.INVALID,
            Slug.PIPELINE_NOT_READY,
            Slug.NOT_AVAILABLE_NOW,
        ),
    )
    async def logs(request: Request, pipeline: str, lines: Lines = LINES) -> LogsAnswer:
        """Return the newest lines of the runs on the runner that has the pipeline now, 128 kB at
        most. Lines are text, or JSON if services write their logs so.
        """
        asking = caller(request)
        operation = await commands.logs(asking, pipeline, lines, request_id(request))
        hold(request)
        reply = await answers.within(asking, operation, WAIT_S)
        if reply is None or (reply.state is OperationState.DONE and reply.result is None):
            raise Retryable(f"the runner of {pipeline} has not answered: ask again")
        if reply.state is not OperationState.DONE:
            raise refusal_of(reply)
        return LogsAnswer.model_validate_json(reply.result or "")

    return router
