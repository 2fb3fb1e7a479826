"""The routes that open and close watches: HTTP in, a message in `waybill.watches` out."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import TypeAdapter

from waybill_ingress.adapters.http.idempotency import KEY, OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.watch_models import WatchRequest
from waybill_ingress.app.ports import Log
from waybill_ingress.app.watches import WantedWatch, Watches
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.tokens import CHARACTERS_MAX
from waybill_shared.contract.watch_details import WatchDetail, watch_detail, with_secret
from waybill_shared.contract.webhooks import read_secret, write_secret
from waybill_shared.http.app import caller, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals
from waybill_shared.http.plain_routes import PlainRoute

BODY_BYTES_MAX: Final = 2 * CHARACTERS_MAX
DETAIL: Final = TypeAdapter(WatchDetail)
OF_WATCHES: Final[dict[str, Any]] = {"parameters": [KEY]}
OPENED: Final[Responses] = {
    201: {
        "model": WatchDetail,
        "description": "its event will be written; Location is where to look at it",
    },
    **refusals(
        *OF_BODIES,
        *OF_KEYS,
        Slug.INVALID,
        Slug.TOKEN_NOT_FOUND,
        Slug.TOKEN_EXPIRED,
        Slug.TOO_MANY_WATCHES,
        Slug.NOT_AVAILABLE_NOW,
    ),
}
AGAIN: Final = refusals(
    *OF_KEYS, Slug.WATCH_NOT_FOUND, Slug.NOTHING_TO_DELIVER, Slug.NOT_AVAILABLE_NOW
)
ENDED: Final = refusals(*OF_KEYS, Slug.WATCH_NOT_FOUND, Slug.NOT_AVAILABLE_NOW)


def watches_router(watches: Watches, repeats: IdempotentRoutes) -> APIRouter:
    router = APIRouter(prefix="/v1/watches", tags=["watches"], route_class=PlainRoute)
    _add_post(router, watches, repeats)
    _add_changes(router, watches, repeats)
    return router


def _add_post(router: APIRouter, watches: Watches, repeats: IdempotentRoutes) -> None:
    @router.post(
        "",
        status_code=201,
        summary="Get an event in `waybill.status`, and by `GET /v1/events`, when a token is final",
        response_model=WatchDetail,
        responses=OPENED,
        openapi_extra={**OF_WATCHES, **body_as(WatchRequest)},
    )
    async def post_watch(request: Request) -> Response:
        """Open a watch. Its event is sent once, also if the token is final already, and when it
        expires.
        """
        raw = await read_body(request, bytes_max=BODY_BYTES_MAX)
        wanted = body_of(WatchRequest, raw)

        async def begin(log: Log | None) -> Response:
            watch, made = await watches.begin(caller(request), _watch_of(wanted), log)
            detail = watch_detail(watch)
            shown = detail if made is None else with_secret(detail, write_secret(made))
            return _answer(shown, 201, {"Location": f"/v1/watches/{watch.id}"})

        return await repeats.once(request, raw, begin)


def _add_changes(router: APIRouter, watches: Watches, repeats: IdempotentRoutes) -> None:
    @router.delete(
        "/{watch}",
        summary="End a watch: its event is not written, or it is not shown any more",
        response_model=WatchDetail,
        responses=ENDED,
        openapi_extra=OF_WATCHES,
    )
    async def delete_watch(request: Request, watch: str) -> Response:
        """Close a watch. An event that was sent already stays valid."""

        async def end(log: Log | None) -> Response:
            return _answer(watch_detail(await watches.end(caller(request), watch, log)))

        return await repeats.once(request, b"", end)

    @router.post(
        "/{watch}/redeliver",
        status_code=202,
        summary="Send the event of a watch to its webhook again, at once",
        response_model=WatchDetail,
        responses=AGAIN,
        openapi_extra=OF_WATCHES,
    )
    async def redeliver_watch(request: Request, watch: str) -> Response:
        """Send the event again, also while it is being tried, and then for another 24 hours. Its
        `webhook-id` is the same.
        """

        async def again(log: Log | None) -> Response:
            found = await watches.redeliver(caller(request), watch, log)
            return _answer(watch_detail(found), 202)

        return await repeats.once(request, b"", again)


def _answer(
    detail: WatchDetail, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return Response(DETAIL.dump_json(detail), status, headers, media_type="application/json")


def _watch_of(request: WatchRequest) -> WantedWatch:
    hook = request.webhook
    secret = None if hook is None or hook.secret is None else read_secret(hook.secret)
    return WantedWatch(
        token=request.token,
        labels=request.labels,
        view=request.view,
        url=None if hook is None else hook.url,
        secret=secret,
    )
