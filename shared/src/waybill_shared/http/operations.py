"""The form of an operation over HTTP, for every service that answers how it ended."""

import json
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from waybill_shared.contract.moments import Moment
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.http.examples import with_example

ACTOR: Final = "the id of the API key that wanted it; anonymous where no keys are in use"


def _parse(result: object) -> object:
    return json.loads(result) if isinstance(result, str) else result


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class PlacedError(_Answer):
    message: str
    line: int | None
    column: int | None
    path: str
    hint: str


class OperationAnswer(_Answer):
    model_config = with_example("operation")

    id: str
    pipeline: str
    pipeline_uid: str | None = Field(
        default=None,
        description="of the life of the pipeline that was changed; a check has its own",
    )
    action: str = Field(description=meanings(Action))
    actor: str | None = Field(default=None, description=f"{ACTOR}; null while it is pending")
    state: str = Field(description=meanings(OperationState))
    generation: int | None = Field(
        default=None, description="of the pipeline after the change, if there is a pipeline"
    )
    at: Moment | None = None
    problem: str | None = Field(
        default=None, description="why it failed: the last word of a problem's `type`"
    )
    errors: list[PlacedError] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    result: Annotated[dict[str, Any] | None, BeforeValidator(_parse)] = Field(
        default=None,
        description="what a check has found, as `POST /v1/validate` answers it; what was done to a"
        " table, `tasks` by their names, in numbers; null when it is no longer kept",
    )
