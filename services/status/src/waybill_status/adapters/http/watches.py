"""Routes of status about watches, and about the events of all."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Refusal, Retryable, invalid
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.watch_details import WatchDetail, watch_detail
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.http.app import caller
from waybill_shared.http.asyncapi import PATH, document
from waybill_shared.http.openapi import refusals
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import EventQuery, StatusEventsAnswer, WatchesAnswer
from waybill_status.adapters.http.streams import EVENT_STREAM, EventStream
from waybill_status.app.event_log import EventFilter, EventLog, SentEvent
from waybill_status.app.ports import News
from waybill_status.core.watches.delivery_book import DeliveryBook

CUT: Final = "waybill.cut"
"""The last event of a stream that was too slow for its reader: its id says where to continue."""
LIMIT_MAX: Final = 1_000
DIGITS_MAX: Final = 16


def watches_router(book: WatchBook, deliveries: DeliveryBook, news: News) -> APIRouter:
    router = APIRouter(prefix="/v1/watches", tags=["watches"])

    @router.get(
        "",
        summary="Who wants to be notified of tokens, the newest first",
        responses=refusals(Slug.INVALID, Slug.NOT_AVAILABLE_NOW),
    )
    async def get_watches(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 100,
        cursor: Annotated[str, Query(description="`next_cursor` of the page before")] = "",
    ) -> WatchesAnswer:
        """Return the watches. Reported ones are shown for a month, 200,000 of them at most."""
        await _catch_up(news)
        before = _place(cursor) if cursor else None
        found = await asyncio.to_thread(book.of, caller(request).tenant, before)
        page = found[:limit]
        more = len(found) > limit
        items = [watch_detail(watch, deliveries.get(watch.id)) for watch in page]
        return WatchesAnswer(items=items, next_cursor=_cursor(page[-1]) if more else None)

    @router.get(
        "/{watch}",
        summary="One watch: whether it was reported, and as what",
        responses=refusals(Slug.WATCH_NOT_FOUND, Slug.NOT_AVAILABLE_NOW),
    )
    async def get_watch(request: Request, watch: str) -> WatchDetail:
        """Return the watch. Its event has the outcome; it is in `waybill.status` for a week."""
        await _catch_up(news)
        found = book.get(caller(request).tenant, watch)
        if found is None:
            raise Refusal(Slug.WATCH_NOT_FOUND, f"{watch!r:.100} is the id of no watch")
        return watch_detail(found, deliveries.get(found.id))

    return router


def event_log_router(events: EventLog, news: News) -> APIRouter:
    router = APIRouter(prefix="/v1/events", tags=["watches"])

    @router.get(
        "",
        summary="What was reported in `waybill.status`; as a stream, what is reported from now on",
        response_model=StatusEventsAnswer,
        responses={
            200: shown("status_events", streamed=True),
            **refusals(Slug.INVALID, Slug.TOO_MANY_WAITERS, Slug.NOT_AVAILABLE_NOW),
        },
    )
    async def get_status_events(
        request: Request, wanted: Annotated[EventQuery, Query()]
    ) -> Response:
        """Return CloudEvents: the newest 500 of the last day. With `Accept: text/event-stream` each
        is an event, from now on, or after the one that `Last-Event-ID` names: on any `status`,
        after any restart, for a week. A reader that is too slow is disconnected: its last event is
        `waybill.cut`, with the id after which to continue. The stream does not end by itself."""
        await _catch_up(news)
        asked = _filter(caller(request).tenant, wanted)
        if EVENT_STREAM not in request.headers.get("accept", ""):
            items, position = events.newest(asked)
            answer = StatusEventsAnswer(items=items, position=position)
            return Response(answer.model_dump_json(), media_type="application/json")
        after = request.headers.get("last-event-id") or None
        sent = events.follow(asked, after)
        return EventStream(_lines(sent))

    return router


def asyncapi_router() -> APIRouter:
    """Return the route of the AsyncAPI document. No key is needed, as for the description of
    HTTP."""
    router = APIRouter(include_in_schema=False)
    described = json.dumps(document()).encode()

    async def asyncapi(request: Request) -> Response:
        return Response(described, media_type="application/json")

    router.add_route(PATH, asyncapi)
    return router


def _cursor(last: TokenWatch) -> str:
    return f"{last.at}.{last.id}"


def _place(cursor: str) -> tuple[int, str]:
    at, _, watch = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < DIGITS_MAX):
        raise invalid("query.cursor", f"{cursor!r:.100} is no cursor of ours")
    return int(at), watch


async def _catch_up(news: News) -> None:
    if not await news.catch_up():
        raise Retryable("this status has not read all of it yet: try again")


def _filter(tenant: str, wanted: EventQuery) -> EventFilter:
    return EventFilter(
        tenant=tenant,
        types=frozenset(wanted.type),
        pipeline=wanted.pipeline,
        stage=wanted.stage,
        watch=wanted.watch,
        labels=dict(map(_label, wanted.label)),
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise invalid("query.label", f"{text!r:.100} is no NAME=VALUE")
    return name, value


async def _lines(sent: AsyncIterator[SentEvent]) -> AsyncGenerator[bytes, None]:
    async for each in sent:
        if each.cut:
            yield format_sse_event(event=CUT, data_str="{}", id=each.id)
        elif each.event is None:  # no event; a reader that reconnects continues from here
            yield f"id: {each.id}\n\n".encode()
        else:
            text = codec.to_json(each.event)
            yield format_sse_event(event=each.event.type, data_str=text, id=each.id)
