"""Routes about what was asked: how a change went, and what the API key of a request may do."""

from typing import Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.operations import read_operation
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_shared.http.operations import OperationAnswer
from waybill_shared.kafka.replies import Replies
from waybill_status.adapters.http.tokens import Wait

OPERATION_REFUSALS: Final = refusals(Slug.OPERATION_NOT_FOUND, Slug.INVALID, Slug.NOT_AVAILABLE_NOW)


class KeyAnswer(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"id": "3f9c0a1b2c3d", "scopes": ["read", "write"]}}
    )

    id: str | None = Field(description="of the API key; null where no keys are in use")
    scopes: list[str] = Field(description="what it may do: read | write | admin")


def key_router() -> APIRouter:
    router = APIRouter(prefix="/v1/key", tags=["operations"])

    @router.get("", summary="What the API key of this request may do")
    async def get_key(request: Request) -> KeyAnswer:
        """Return the scopes of the key: all scopes if no API keys are in use."""
        asking = caller(request)
        return KeyAnswer(id=asking.key_id, scopes=sorted(asking.scopes))

    return router


def operations_router(replies: Replies) -> APIRouter:
    router = APIRouter(prefix="/v1/operations", tags=["operations"])

    @router.get(
        "/{id}",
        summary="How a change of a pipeline went, or what a check has found",
        responses=OPERATION_REFUSALS,
    )
    async def get_operation(request: Request, id: str, wait: Wait = 0) -> OperationAnswer:
        """Return the operation; it is kept for an hour. With `wait` the answer comes as soon as it
        is done or failed."""
        asked, asking = read_operation(id), caller(request)
        reply = replies.get(asking, id)
        if asked is None and reply is None:
            detail = (
                f"{id[:100]!r} is the id of no operation: take it from the answer to the change"
            )
            raise Refusal(Slug.OPERATION_NOT_FOUND, detail)
        if reply is None and wait > 0:
            reply = await replies.wait(asking, id, wait)
        if reply is not None:
            return OperationAnswer.model_validate(reply)
        assert asked is not None
        return OperationAnswer(
            id=id,
            pipeline=asked.pipeline,
            action=asked.action,
            state=OperationState.PENDING,
        )

    return router
