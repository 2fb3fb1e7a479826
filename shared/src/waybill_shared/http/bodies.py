"""JSON bodies of requests: what is wrong with one is reported by field, with the nearest name."""

from collections.abc import Iterator, Sequence
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names

Body = TypeVar("Body", bound=BaseModel)


def body_of(kind: type[Body], raw: bytes) -> Body:
    """Parse `raw` as a `kind`. Answer 422 with each field that is missing, unknown or wrong."""
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        errors = [
            _describe(kind, item["type"], item["loc"], item["msg"])
            for item in error.errors(include_context=False)
        ]
    detail = "; ".join(": ".join(filter(None, each.values())) for each in errors)
    raise Refusal(Slug.INVALID, detail, errors=errors)


def _describe(
    kind: type[BaseModel], fault: str, place: Sequence[str | int], message: str
) -> dict[str, str]:
    problem = {"path": ".".join(map(str, place)), "message": message.removeprefix("Value error, ")}
    if fault == "missing":
        problem["message"] = "is missing"
    elif fault == "extra_forbidden":
        fields = _model_at(kind, place[:-1]).model_fields
        known = [each.alias or name for name, each in fields.items()]
        problem["message"] = "unknown field"
        problem["hint"] = hint_of_names(str(place[-1]), known, "fields")
    return problem


def _model_at(kind: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    for part in place:
        if isinstance(part, str):
            kind = next(_models_in(kind.model_fields[part].annotation))
    return kind


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
