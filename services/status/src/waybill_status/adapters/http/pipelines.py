"""Routes of status about pipelines: their state, and what happens to them."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import HistoryGap
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import (
    EventAnswer,
    EventsAnswer,
    ManifestsAnswer,
    PipelinesAnswer,
)
from waybill_status.adapters.http.streams import EVENT_STREAM, EventStream
from waybill_status.app.pipelines.history import History
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.offsets import OffsetsReader
from waybill_status.core.pipelines.answers import PipelineDetail
from waybill_status.core.pipelines.history import OLDEST, PipelineEvent
from waybill_status.core.pipelines.listing import LIMIT_MAX, list_wanted
from waybill_status.core.pipelines.offsets import PipelineOffsets

LIMIT: Final = 500

After = Annotated[
    str, Query(description=f"the id of an event; {OLDEST}: before the oldest that is kept")
]
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="of one page")]
AfterName = Annotated[str, Query(description="a name: pipelines with a later one")]
Phases = Annotated[
    Sequence[str], Query(description="in this phase, or in one of several, as `phase=A&phase=B`")
]
Tags = Annotated[
    Sequence[str], Query(description="with this tag of the manifest, or with all of several")
]
Cursor = Annotated[str, Query(description="`next_cursor` of the page before")]


def pipelines_router(pipelines: Pipelines) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get("", summary="The pipelines, and how they are", responses=refusals(Slug.INVALID))
    async def get_pipelines(
        request: Request,
        *,
        phase: Phases = (),
        tag: Tags = (),
        after: AfterName = "",
        limit: Limit = LIMIT_MAX,
        cursor: Cursor = "",
    ) -> PipelinesAnswer:
        """Return the desired state of each, and the newest known phase, by name. An unknown phase
        is refused with the names of all."""
        wanted = list_wanted(phase, tag, after=after, cursor=cursor, limit=limit)
        page = await pipelines.page(caller(request), wanted)
        return PipelinesAnswer(items=list(page.items), next_cursor=page.next)

    @router.get(
        "/{pipeline}",
        summary="One pipeline: inputs, stages, graph, manifest",
        responses={
            200: shown("pipeline"),
            **refusals(Slug.PIPELINE_NOT_FOUND, Slug.PIPELINE_NOT_READY),
        },
    )
    async def get_pipeline(request: Request, pipeline: str) -> PipelineDetail:
        """Return also what blocks it, its last batches, and the error that stopped it, if one
        did."""
        return await pipelines.one(caller(request), pipeline)

    @router.get(
        "/{pipeline}/manifests",
        summary="The manifest of a pipeline, and those before it",
        responses={
            200: shown("manifests"),
            **refusals(Slug.PIPELINE_NOT_FOUND, Slug.PIPELINE_NOT_READY),
        },
    )
    async def get_manifests(request: Request, pipeline: str) -> ManifestsAnswer:
        """Return the present manifest first, then up to ten before it, of 256 kB together."""
        return ManifestsAnswer(items=await pipelines.manifests(caller(request), pipeline))

    return router


def offsets_router(offsets: OffsetsReader) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get(
        "/{pipeline}/offsets",
        summary="Where each stage of a pipeline is in what it reads",
        responses={
            200: shown("offsets"),
            **refusals(Slug.PIPELINE_NOT_FOUND, Slug.PIPELINE_NOT_READY),
        },
    )
    async def get_offsets(request: Request, pipeline: str) -> PipelineOffsets:
        """Return where each stage began in each partition, where its next batch begins, what each
        of its sinks has, and where the partition ends now. What is not known is null, and `unknown`
        says why."""
        return await offsets.of(caller(request), pipeline)

    return router


def events_router(
    pipelines: Pipelines, history: History, *, caught_up: Callable[[], bool]
) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get(
        "/{pipeline}/events",
        summary="What happened to a pipeline in 30 days; as a stream, also what happens next",
        response_model=EventsAnswer,
        responses={
            200: shown("events", streamed=True),
            **refusals(
                Slug.PIPELINE_NOT_FOUND,
                Slug.INVALID,
                Slug.TOO_MANY_WAITERS,
                Slug.PIPELINE_NOT_READY,
                Slug.NOT_AVAILABLE_NOW,
            ),
        },
    )
    async def get_events(
        request: Request,
        pipeline: str,
        *,
        after: After = "",
        limit: Limit = LIMIT,
        cursor: Cursor = "",
    ) -> Response:
        """Return the newest events; each further page has older ones. With `after`, return the
        events after that one; each further page has newer ones. If there is much to search, a page
        may have less than `limit`, or nothing, and still a `next_cursor`. Ids and cursors are valid
        on any `status`, after any restart. `gap` says why events are missing.

        With `Accept: text/event-stream` each is an event, after `Last-Event-ID` or `after`, else
        from the newest of the last day on. An event `gap` says why events are missing. The stream
        does not end by itself."""
        key = await pipelines.key_of(caller(request), pipeline)
        require_caught_up(caught_up)
        if EVENT_STREAM in request.headers.get("accept", ""):
            sent = history.follow(key, request.headers.get("last-event-id") or after)
            return EventStream(_event_lines(sent))
        page = await history.page(key, limit=limit, after=after, cursor=cursor)
        answer = EventsAnswer(
            items=[_event(each) for each in page.items],
            next_cursor=None if page.next is None else str(page.next),
            gap=page.gap,
        )
        return Response(answer.model_dump_json(), media_type="application/json")

    return router


def require_caught_up(caught_up: Callable[[], bool]) -> None:
    """Raise Retryable before the newest events are known."""
    if not caught_up():
        raise Retryable("what happened is still being read: this process has just started")


def _event(sent: PipelineEvent) -> EventAnswer:
    fields = {**asdict(sent.event), "id": sent.id, "kind": sent.kind}
    return EventAnswer.model_validate({**fields, "next_attempt_at": sent.event.next_at})


async def _event_lines(
    sent: AsyncIterator[PipelineEvent | HistoryGap | None],
) -> AsyncGenerator[bytes, None]:
    async for each in sent:
        if each is None:
            yield KEEPALIVE_COMMENT
        elif isinstance(each, HistoryGap):
            yield format_sse_event(event="gap", data_str=json.dumps({"gap": each}))
        else:
            yield format_sse_event(
                event="event", data_str=_event(each).model_dump_json(), id=each.id
            )
