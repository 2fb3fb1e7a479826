"""Sends the commands of routes, and answers with the operation, or with how it ended in time."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.idempotency import KEY, OF_KEYS, IdempotentRoutes
from waybill_ingress.adapters.http.models import AcceptedAnswer
from waybill_ingress.app.commands import reason_of
from waybill_ingress.app.ports import Answers, Log
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import caller, hold, refused
from waybill_shared.http.openapi import Responses
from waybill_shared.http.operations import OperationAnswer

WAIT_S: Final = 1.0  # what needs no driver is done by then
WAIT_S_MAX: Final = 10
OF_WRITES: Final[dict[str, Any]] = {"parameters": [KEY]}
OF_COMMANDS: Final = (
    *OF_KEYS,
    Slug.SUPERSEDED,
    Slug.NOT_ALLOWED_NOW,
    Slug.PIPELINE_GONE,
    Slug.BEGINNING_NEEDED,
    Slug.REWIND_NOT_CONFIRMED,
    Slug.PLAN_INCOMPATIBLE,
    Slug.INVALID,
    Slug.TOO_MANY_COMMANDS,
    Slug.COMMAND_GIVEN_UP,
    Slug.PIPELINE_NOT_READY,
    Slug.NOT_AVAILABLE_NOW,
)
RESPONSES: Final[Responses] = {
    200: {"model": OperationAnswer, "description": "it is done"},
    202: {
        "model": AcceptedAnswer,
        "description": "it was accepted, and goes on: `GET /v1/operations/{id}` says how it went",
    },
}
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=WAIT_S_MAX,
        allow_inf_nan=False,
        description="seconds to wait for it to be done or refused; 0: answer as soon as it is"
        " accepted",
    ),
]


class Carrier:
    """Sends a command, and waits for its answer."""

    def __init__(self, answers: Answers, repeats: IdempotentRoutes) -> None:
        self._answers = answers
        self._repeats = repeats

    async def carry_out(
        self,
        request: Request,
        begin: Callable[[Log | None], Awaitable[OperationId]],
        wait: float,
        body: bytes = b"",
        *,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> Response:
        """Send a command, and answer how it went. `prepare` waits for what must be true before."""

        async def ready() -> None:
            if prepare is not None:
                await prepare()

        async def answer(operation: OperationId) -> Response:
            return await self._answer(request, operation, wait)

        return await self._repeats.operation(request, body, begin, answer, ready)

    async def _answer(self, request: Request, operation: OperationId, wait: float) -> Response:
        if wait == 0:
            return accept(operation)
        hold(request)
        reply = await self._answers.within(caller(request), operation, wait)
        if reply is None:
            return accept(operation)
        if reply.state is OperationState.DONE:
            return answer_with(OperationAnswer.model_validate(reply))
        return refused(request, refusal_of(reply))


def refusal_of(reply: Reply) -> Refusal:
    """Return the refusal for a command that has failed. It contains the operation."""
    members = OperationAnswer.model_validate(reply).model_dump(mode="json")
    said = "; ".join(error.message for error in reply.errors)
    return Refusal(reason_of(reply), said or f"{reply.action} failed", **members)


def accept(operation: OperationId) -> Response:
    return answer_with(
        AcceptedAnswer(
            operation=str(operation), pipeline=operation.pipeline, action=operation.action
        ),
        status=202,
        headers={"Location": f"/v1/operations/{operation}"},
    )
