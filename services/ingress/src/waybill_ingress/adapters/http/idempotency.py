"""Writes that may be sent again: the header Idempotency-Key in, the same answer out."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.bodies import ReceivedBody
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.idempotency_ports import HttpAnswer
from waybill_ingress.app.ports import Log
from waybill_ingress.core.keys import CHARACTERS_MAX, HEADER, KeyedRequest, keyed_request, read_key
from waybill_shared.contract.operations import OperationId, read_operation
from waybill_shared.contract.problems import Slug
from waybill_shared.http.app import caller

Sent = bytes | ReceivedBody
"""The body of a request."""

REPLAYED: Final = "Idempotent-Replayed"
OF_KEYS: Final = (Slug.BAD_IDEMPOTENCY_KEY, Slug.KEY_REUSED, Slug.REQUEST_RUNNING)
"""How a request may be refused for its key."""
KEY: Final[dict[str, Any]] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": CHARACTERS_MAX},
    "example": "8f14e45f-ceea-467a-9a36-dedd4bea2543",
    "description": "makes it safe to send the request again: the answer is the same, with"
    f" `{REPLAYED}: true`, and nothing is written twice. For a day; then the key is new. A request"
    " that was refused before anything was written is not remembered.",
}


class IdempotentRoutes:
    """Repeatable writes for routes. Without a key each method simply acts."""

    def __init__(self, repeats: IdempotentRequests) -> None:
        self._repeats = repeats

    async def once(
        self, request: Request, body: Sent, act: Callable[[Log | None], Awaitable[Response]]
    ) -> Response:
        """Carry out a request once. `act` only writes to the log that it gets, or to the
        usual one.
        """
        wanted = _keyed_request(request, body)
        if wanted is None:
            return await act(None)

        async def say(log: Log) -> HttpAnswer:
            return _stored(await act(log))

        return _response(await self._repeats.once(wanted, say))

    async def once_by_id(
        self, request: Request, body: Sent, act: Callable[[str | None, bool], Awaitable[Response]]
    ) -> Response:
        """Carry out a request that has effects outside of its transaction.

        `act` gets the id of the request, if that has a key, and True if an earlier attempt may have
        done something for it. It finds out itself what that is.
        """
        wanted = _keyed_request(request, body)
        if wanted is None:
            return await act(None, False)

        async def say(id: str, resumed: bool) -> HttpAnswer:
            return _stored(await act(id, resumed))

        return _response(await self._repeats.once_by_id(wanted, say))

    async def operation(
        self,
        request: Request,
        body: Sent,
        begin: Callable[[Log | None], Awaitable[OperationId]],
        answer: Callable[[OperationId], Awaitable[Response]],
        prepare: Callable[[], Awaitable[None]],
    ) -> Response:
        """Start an operation once. `prepare` comes first, and may be repeated."""
        wanted = _keyed_request(request, body)
        if wanted is None:
            await prepare()
            return await answer(await begin(None))

        async def start(log: Log) -> str:
            return str(await begin(log))

        async def say(text: str) -> HttpAnswer:
            operation = read_operation(text)
            assert operation is not None
            return _stored(await answer(operation))

        return _response(await self._repeats.operation(wanted, start, say, prepare))


def _keyed_request(request: Request, body: Sent) -> KeyedRequest | None:
    key = read_key(request.headers.getlist(HEADER))
    if key is None:
        return None
    return keyed_request(
        caller(request),
        key,
        method=request.method,
        path=request.url.path,
        query=request.url.query,
        media_type=request.headers.get("content-type", ""),
        digest=hashlib.sha256(body).hexdigest() if isinstance(body, bytes) else body.digest,
    )


def _stored(response: Response) -> HttpAnswer:
    headers = {n: v for n, v in response.headers.items() if n != "content-length"}
    return HttpAnswer(status=response.status_code, headers=headers, body=bytes(response.body))


def _response(said: HttpAnswer) -> Response:
    headers: Mapping[str, str] = {REPLAYED: "true"} if said.replayed else {}
    return Response(said.body, said.status, {**said.headers, **headers})
