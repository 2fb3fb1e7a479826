"""Answers that are made by the model that documents them."""

from collections.abc import Mapping

from fastapi.responses import Response
from pydantic import BaseModel


def answer_with(
    model: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer that has these values. Members that were not set are left out."""
    text = model.model_dump_json(exclude_unset=True)
    return Response(text, status, headers, media_type="application/json")
