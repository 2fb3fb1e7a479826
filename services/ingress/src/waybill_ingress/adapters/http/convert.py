"""The route that makes a manifest from SQL: HTTP in, the text of a manifest out."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.models import ConversionAnswer, ConvertRequest
from waybill_ingress.core.conversions import manifest_of
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX
from waybill_shared.contract.problems import Slug
from waybill_shared.http.answers import answer_with
from waybill_shared.http.app import read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals

BODY_BYTES_MAX: Final = 2 * SIZE_BYTES_MAX  # a text in JSON is longer
RESPONSES: Final[Responses] = {
    200: {"model": ConversionAnswer, "description": "a manifest that can be applied"},
    **refusals(*OF_BODIES, Slug.INVALID),
}


def convert_router() -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["pipelines"])

    @router.post(
        "/convert",
        summary="Make a manifest of tables that are written in SQL",
        responses=RESPONSES,
        openapi_extra=body_as(ConvertRequest),
    )
    async def convert(request: Request) -> Response:
        """Make a manifest from tables in SQL. Each `CREATE TABLE` becomes an input, and a stage
        that writes its rows into the lakehouse. What Waybill cannot keep is refused with its line
        and column. Nothing is created or changed.
        """
        wanted = body_of(ConvertRequest, await read_body(request, bytes_max=BODY_BYTES_MAX))
        manifest = await asyncio.to_thread(manifest_of, wanted.sql, wanted.name)
        return answer_with(ConversionAnswer(manifest=manifest))

    return router
