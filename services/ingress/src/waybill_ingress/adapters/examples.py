"""Refused commands as the documentation shows them: problems that carry the failed operation."""

from collections.abc import Mapping
from typing import Any, Final

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import PROBLEM_JSON, Slug, problem_body
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.http.operations import OPERATION

JsonObject = dict[str, Any]
REQUEST_ID: Final = "8f14e45fceea167a5a36dedd4bea2543"


def _error(message: str, hint: str, **place: object) -> JsonObject:
    return {"message": message, "line": None, "column": None, "path": "", "hint": hint, **place}


def _refused(
    slugs: tuple[Slug, ...], error: JsonObject, action: Action = Action.APPLY
) -> JsonObject:
    """How an answer with their common status looks; the example is of the first."""
    failed = {
        **OPERATION,
        "id": OPERATION["id"].replace(Action.APPLY, action),
        "action": action,
        "state": OperationState.FAILED,
        "problem": slugs[0],
        "errors": [error],
    }
    example = problem_body(Refusal(slugs[0], error["message"], **failed), request_id=REQUEST_ID)
    return {
        "description": "; ".join(f"`{slug}`: {slug.meaning}" for slug in slugs),
        "content": {PROBLEM_JSON: {"schema": {"type": "object"}, "example": example}},
    }


REFUSALS: Final[Mapping[int | str, JsonObject]] = {
    409: _refused(
        (Slug.SUPERSEDED, Slug.PIPELINE_GONE, Slug.BEGINNING_NEEDED),
        _error("superseded by a later stopped command", ""),
    ),
    422: _refused(
        (Slug.PLAN_INCOMPATIBLE, Slug.INVALID),
        _error(
            "plan_incompatible: stage load would lose all of its sinks",
            "keep one of them beside the new ones for a while",
            path="stages.load.sinks",
        ),
    ),
    503: _refused(
        (Slug.COMMAND_GIVEN_UP, Slug.PIPELINE_NOT_READY, Slug.NOT_AVAILABLE_NOW),
        _error(
            "topic orders.in cannot be created now", "send the command again when that is mended"
        ),
    ),
}

CHECK_REFUSALS: Final[Mapping[int | str, JsonObject]] = {
    422: _refused(
        (Slug.INVALID,),
        _error(
            "it was not compiled in the time that a check has",
            "split its queries into smaller steps or pipelines",
        ),
        Action.VALIDATE,
    ),
    429: _refused(
        (Slug.TOO_MANY_CHECKS,),
        _error("32 manifests are waiting for their check", "send it again in a moment"),
        Action.VALIDATE,
    ),
    500: _refused(
        (Slug.INTERNAL,),
        _error(
            "the driver in which it was checked ended, and the next one too",
            "the log of the stage_runner says why",
        ),
        Action.VALIDATE,
    ),
}
