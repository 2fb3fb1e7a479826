"""Routes of ingress about records and tokens: HTTP in, use case, HTTP out. Decides nothing."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.bodies import ReceivedBody, receive
from waybill_ingress.adapters.http.formats_page import BODIES, OF_FORMATS
from waybill_ingress.adapters.http.idempotency import KEY, OF_KEYS, REPLAYED, IdempotentRoutes
from waybill_ingress.adapters.http.models import (
    RecordsAnswer,
    RejectedRow,
    TokenAnswer,
    TokenRequest,
)
from waybill_ingress.app.connector_tokens import ConnectorTokens
from waybill_ingress.app.measuring import count_records
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.ports import Log, Sealed
from waybill_ingress.app.records import Receipt, Records
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.forms import Reader, form_of
from waybill_ingress.core.bodies.packed import BodyLimits
from waybill_ingress.core.if_match import Demand, read_demand
from waybill_ingress.core.keys import HEADER
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.connector_view import ConnectorDetail
from waybill_shared.contract.errors import invalid
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, body_as, refusals
from waybill_shared.http.plain_routes import PlainRoute
from waybill_shared.http.request_ids import request_id

IF_MATCH: Final[dict[str, Any]] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "example": '"2"',
    "description": "the least generation of the pipeline that the token is to be of, as"
    " the operation of a change has it: below it the answer is 503 `pipeline_behind`."
    ' `"UID/2"` is that of one life of the pipeline.',
}
OF_WRITES: Final[dict[str, Any]] = {"parameters": [KEY, IF_MATCH]}
ATOMIC: Final[dict[str, Any]] = {
    "name": "atomic",
    "in": "query",
    "required": False,
    "schema": {"type": "boolean", "default": False},
    "description": "`true`: one record that does not fit the input refuses all of them, with 422"
    " `records_rejected`, and none is written. If Kafka itself accepts only some, those stay"
    " without a token: 422 `records_refused_by_kafka` where it will never accept the others, else"
    " 503.",
}
TOKENS_BYTES_MAX: Final = 10_000_000
OF_PIPELINES: Final = (
    Slug.BAD_IF_MATCH,
    Slug.PIPELINE_NOT_FOUND,
    Slug.INPUT_NOT_FOUND,
    Slug.INVALID,
    Slug.PIPELINE_NOT_READY,
    Slug.PIPELINE_BEHIND,
    Slug.INPUT_NOT_READY,
    Slug.TOPIC_RECREATED,
    Slug.NOT_AVAILABLE_NOW,
)
RECORDS_REFUSALS: Final = refusals(
    *OF_BODIES,
    *OF_KEYS,
    *OF_PIPELINES,
    Slug.TOO_MANY_RECORDS,
    Slug.UNSUPPORTED_ENCODING,
    Slug.UNSUPPORTED_MEDIA_TYPE,
    Slug.BODY_NOT_AVRO,
    Slug.BODY_NOT_CSV,
    Slug.BODY_NOT_JSON,
    Slug.BODY_NOT_PACKED,
    Slug.NO_RECORDS,
    Slug.RECORDS_REJECTED,
    Slug.RECORDS_REFUSED_BY_KAFKA,
)
TOKEN_REFUSALS: Final = refusals(
    *OF_BODIES,
    *OF_KEYS,
    *OF_PIPELINES,
    Slug.CLUSTER_UNKNOWN,
    Slug.PARTITION_UNKNOWN,
    Slug.POSITION_BEYOND_END,
    Slug.TOPIC_ID_UNKNOWN,
    Slug.TOPIC_NOT_AN_INPUT,
    Slug.CONNECTOR_NOT_FOUND,
    Slug.TOKEN_NOT_FOUND,
    Slug.TOKEN_EXPIRED,
    Slug.TOKEN_TOO_LARGE,
    Slug.TOO_MANY_TOKENS,
)


def records_router(records: Records, repeats: IdempotentRoutes, limits: BodyLimits) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["records"], route_class=PlainRoute)

    @router.post(
        "/pipelines/{pipeline}/inputs/{input}/records",
        summary="Send records and get the token that says when they have arrived",
        response_model=RecordsAnswer,
        responses=RECORDS_REFUSALS,
        openapi_extra={"parameters": [KEY, IF_MATCH, ATOMIC, *OF_FORMATS], "requestBody": BODIES},
        response_description="the records that fit are kept, and the token is for them; `rejected`"
        " has the others, each with its reason: send those again when they are mended",
    )
    async def post_records(request: Request, pipeline: str, input: str) -> Response:
        """Check each record against the schema of the input, and write those that fit as they were
        sent. The token covers exactly what Kafka has acknowledged.
        """
        read = form_of(request.headers.get("content-type", ""), request.query_params.multi_items())
        most = limits.of_whole() if HEADER.lower() in request.headers else limits
        with await receive(request, most) as body:
            return await take(request, pipeline, input, body, read)

    async def take(
        request: Request, pipeline: str, input: str, body: ReceivedBody, read: Reader
    ) -> Response:
        demand = read_demand(request.headers.get("if-match"))
        asking, atomic = caller(request), _atomic(request)

        async def write(log: Log | None) -> tuple[Receipt, Response]:
            receipt = await records.write(
                asking, pipeline, input, body, read, demand=demand, atomic=atomic, log=log
            )
            answer = RecordsAnswer(
                token=receipt.token,
                accepted=receipt.accepted,
                rejected=[RejectedRow(index=e.index, reason=e.reason) for e in receipt.rejected],
                request_id=request_id(request),
            )
            return receipt, answer_with(answer, headers=location_of(receipt.token))

        return await write_once(repeats, request, body, (pipeline, input), write)

    return router


async def write_once(
    repeats: IdempotentRoutes,
    request: Request,
    body: ReceivedBody,
    target: tuple[str, str],
    write: Callable[[Log | None], Awaitable[tuple[Receipt | None, Response]]],
) -> Response:
    """Write records once, and count them, unless the answer is that of an earlier request.

    `target`: pipeline and input. `write` returns no receipt if there was no record.
    """
    receipt: Receipt | None = None

    async def act(log: Log | None) -> Response:
        nonlocal receipt
        receipt, answer = await write(log)
        return answer

    answer = await repeats.once(request, body, act)
    if receipt is not None and REPLAYED not in answer.headers:
        count_records(*target, accepted=receipt.accepted, rejected=len(receipt.rejected))
    return answer


def tokens_router(
    tokens: TokenIssuer, merges: Merges, connectors: ConnectorTokens, repeats: IdempotentRoutes
) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["tokens"], route_class=PlainRoute)

    @router.post(
        "/tokens",
        summary="Get a token for records that reached Kafka by other ways, or one of many",
        response_model=TokenAnswer,
        responses=TOKEN_REFUSALS,
        openapi_extra={**OF_WRITES, **body_as(TokenRequest)},
    )
    async def post_token(request: Request) -> Response:
        """Issue a token for what an input contains now (`input`), or for what one of its
        connectors has written so far (`connector`). Or issue one for records at given `positions`,
        or for all that other tokens cover (`merge`).
        """
        raw = await read_body(request, bytes_max=TOKENS_BYTES_MAX)
        wanted = body_of(TokenRequest, raw)
        demand = read_demand(request.headers.get("if-match"))

        async def issue(_: Log | None) -> Response:
            asking = caller(request)
            progress: dict[str, ConnectorDetail] = {}
            if wanted.connector is not None:
                names = str(wanted.pipeline), str(wanted.input), wanted.connector
                sealed, progress["connector"] = await connectors.issue(
                    asking, *names, demand=demand
                )
            else:
                sealed = await _issue(tokens, merges, asking, wanted, demand)
            answer = TokenAnswer(
                token=sealed.token,
                pipeline=wanted.pipeline,
                issued_at=format_moment(sealed.issued_at),
                request_id=request_id(request),
                **progress,
            )
            return answer_with(answer, headers=location_of(sealed.token))

        return await repeats.once(request, raw, issue)

    return router


def location_of(token: str) -> dict[str, str]:
    """Return the header that says where the outcome of the token is."""
    return {"Location": f"/v1/tokens/{token}"}


async def _issue(
    tokens: TokenIssuer, merges: Merges, asking: Caller, wanted: TokenRequest, demand: Demand | None
) -> Sealed:
    if wanted.merge is not None:
        return await merges.merge(asking, wanted.merge)
    assert wanted.pipeline is not None, "the request was validated"
    if wanted.input is not None:
        return await tokens.for_input(asking, wanted.pipeline, wanted.input, demand=demand)
    positions = [body.position() for body in wanted.positions or ()]
    return await tokens.for_positions(
        asking, wanted.pipeline, positions, cluster_id=wanted.cluster_id, demand=demand
    )


def _atomic(request: Request) -> bool:
    asked = request.query_params.get("atomic", "false")
    if asked not in ("true", "false"):
        raise invalid("query.atomic", f"{asked!r:.80} is neither true nor false")
    return asked == "true"
