"""The route that says what the API key of a request may do."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from waybill_shared.http.app import caller


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
