"""Routes of Feldera that read, for its unchanged clients: `/v0` in, the use cases of `/v1`,
Feldera's answers out. Decides nothing."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.tokens import CHARACTERS_MAX, Token, pipeline_id
from waybill_shared.http.app import caller, hold
from waybill_shared.http.feldera import errors
from waybill_status.app.measuring import count_outcome
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.progress import ProgressReader
from waybill_status.core import feldera_answers as answers
from waybill_status.core.feldera import (
    completion_of,
    connector_stats_of,
    find_connector,
    stats_of,
    status_in_full,
    status_of,
)
from waybill_status.core.outcomes.outcome import Outcome

SDK: Final = "feldera-python-sdk"
OF_PIPELINES: Final = (Slug.PIPELINE_NOT_FOUND, Slug.PIPELINE_NOT_READY)
PIPELINE_ERRORS: Final = errors(Slug.INVALID, *OF_PIPELINES)
STATS_ERRORS: Final = errors(*OF_PIPELINES, Slug.OUTCOME_UNKNOWN, Slug.NOT_AVAILABLE_NOW)
COMPLETION_ERRORS: Final = errors(
    Slug.INVALID,
    *OF_PIPELINES,
    Slug.TOKEN_NOT_FOUND,
    Slug.RECORDS_LOST,
    Slug.TOKEN_EXPIRED,
    Slug.RECORDS_DEAD_LETTERED,
    Slug.TOO_MANY_WAITERS,
    Slug.OUTCOME_UNKNOWN,
)
Selector = Annotated[
    str,
    Query(
        pattern="^(all|status|status_with_connectors)$",
        description="how much is in the answer",
    ),
]


def feldera_router(pipelines: Pipelines) -> APIRouter:
    router = APIRouter(prefix="/v0", tags=["feldera"])

    @router.get("/config", summary="What clients of Feldera ask first")
    async def get_config() -> answers.FelderaConfig:
        """Return the version of Feldera that these answers are for."""
        return answers.FelderaConfig()

    @router.get("/cluster_healthz", summary="For clients of Feldera that wait for a server")
    async def cluster_healthz() -> answers.FelderaHealth:
        """Return that all is healthy. `GET /readyz` says more."""
        return answers.FelderaHealth()

    async def in_full(request: Request, name: str) -> answers.FelderaPipeline:
        record = await pipelines.record(caller(request), name)
        return status_in_full(await pipelines.one(caller(request), name), record.manifest.model)

    @router.get(
        "/pipelines",
        summary="All pipelines, as clients of Feldera read them",
        responses=errors(Slug.INVALID),
    )
    async def get_pipelines(
        request: Request, selector: Selector = "all"
    ) -> list[answers.FelderaPipeline] | list[answers.FelderaStatus]:
        """Return their state; with `selector=all` also tables and manifests."""
        found = await pipelines.all(caller(request))
        if selector != "all":
            return [status_of(each) for each in found]
        return [await in_full(request, each.name) for each in found]

    @router.get(
        "/pipelines/{pipeline}",
        summary="One pipeline, as clients of Feldera read it",
        responses=PIPELINE_ERRORS,
    )
    async def get_pipeline(
        request: Request, pipeline: str, selector: Selector = "all"
    ) -> answers.FelderaPipeline:
        """Return the pipeline: inputs are its tables, and sinks its views."""
        return await in_full(request, pipeline)

    return router


def feldera_stats_router(pipelines: Pipelines, progress: ProgressReader) -> APIRouter:
    router = APIRouter(prefix="/v0/pipelines/{pipeline}", tags=["feldera"])

    @router.get(
        "/stats",
        summary="How far a pipeline has come, counted in offsets",
        responses=STATS_ERRORS,
    )
    async def get_stats(request: Request, pipeline: str) -> answers.FelderaStats:
        """Return the numbers. `pipeline_complete`: all that its inputs contained has arrived."""
        detail = await pipelines.one(caller(request), pipeline)
        return stats_of(detail, await progress.of(caller(request), pipeline))

    @router.get(
        "/tables/{table}/connectors/{connector}/stats",
        summary="How far a connector is with its file",
        responses=errors(*OF_PIPELINES, Slug.INPUT_NOT_FOUND, Slug.CONNECTOR_NOT_FOUND),
    )
    async def get_connector_stats(
        request: Request, pipeline: str, table: str, connector: str
    ) -> answers.Endpoint:
        """Return the numbers of a connector. `GET /v1/pipelines/{pipeline}` has the same, and why
        the last attempt failed."""
        detail = await pipelines.one(caller(request), pipeline)
        return connector_stats_of(*find_connector(detail, table, connector))

    return router


def feldera_tokens_router(pipelines: Pipelines, tokens: Tokens, *, hold_s: float) -> APIRouter:
    router = APIRouter(prefix="/v0", tags=["feldera"])

    @router.get(
        "/pipelines/{pipeline}/completion_status",
        summary="Whether all that a token is for has arrived",
        responses=COMPLETION_ERRORS,
    )
    async def get_completion_status(
        request: Request,
        pipeline: str,
        token: str,
        wait: Annotated[float | None, Query(ge=0, le=60, allow_inf_nan=False)] = None,
    ) -> answers.FelderaCompletion:
        """Wait for a while if the client is Feldera's own, or for `wait` seconds. What will never
        be complete is an error: 422 or 410."""
        if len(token) > CHARACTERS_MAX:
            raise Refusal(Slug.TOKEN_TOO_LONG, "longer than any token")
        opened = tokens.open(caller(request).tenant, token)
        await _check_owner(request, pipelines, pipeline, opened)
        wait_s = wait if wait is not None else hold_s * _is_sdk(request)
        outcome = await _outcome(request, tokens, opened, wait_s)
        count_outcome(outcome)
        return completion_of(outcome)

    return router


async def _check_owner(
    request: Request, pipelines: Pipelines, pipeline: str, opened: Token
) -> None:
    """Refuse a token of another pipeline. A caller with nothing but a token learns nothing of other
    pipelines."""
    other = Refusal(Slug.TOKEN_NOT_FOUND, f"the token is not of pipeline {pipeline:.100}")
    try:
        record = await pipelines.record(caller(request), pipeline)
    except Refusal as refusal:
        hidden = Scope.READ not in caller(request).scopes
        if hidden and refusal.slug in (Slug.PIPELINE_NOT_FOUND, Slug.RENAMED):
            raise other from refusal
        raise
    own = pipeline_id(record.tenant, record.pipeline_uid)
    if any(part.pipeline_id != own for part in opened.parts):
        raise other


async def _outcome(request: Request, tokens: Tokens, opened: Token, wait_s: float) -> Outcome:
    if wait_s > 0:
        hold(request)
        try:
            return await tokens.wait(opened, wait_s)
        except Refusal as refusal:
            asked = "wait" in request.query_params
            if asked or refusal.slug is not Slug.TOO_MANY_WAITERS:
                raise
    (now,) = await tokens.now([opened])
    if isinstance(now, Refusal):
        raise now
    return now


def _is_sdk(request: Request) -> bool:
    return request.headers.get("user-agent", "").startswith(SDK)
