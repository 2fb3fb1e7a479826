"""Examples of refused commands for the documentation: problems with the failed operation."""

from collections.abc import Mapping
from typing import Any, Final

from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.http.operations import OPERATION

JsonObject = dict[str, Any]


def _error(message: str, hint: str, **place: object) -> JsonObject:
    return {"message": message, "line": None, "column": None, "path": "", "hint": hint, **place}


def _failed(slug: Slug, error: JsonObject, action: Action = Action.APPLY) -> JsonObject:
    return {
        **OPERATION,
        "id": OPERATION["id"].replace(Action.APPLY, action),
        "action": action,
        "state": OperationState.FAILED,
        "problem": slug,
        "errors": [error],
    }


FAILED: Final[Mapping[Slug, JsonObject]] = {
    Slug.SUPERSEDED: _failed(Slug.SUPERSEDED, _error("superseded by a later stopped command", "")),
    Slug.PLAN_INCOMPATIBLE: _failed(
        Slug.PLAN_INCOMPATIBLE,
        _error(
            "plan_incompatible: stage load would lose all of its sinks",
            "keep one of them beside the new ones for a while",
            path="stages.load.sinks",
        ),
    ),
    Slug.COMMAND_GIVEN_UP: _failed(
        Slug.COMMAND_GIVEN_UP,
        _error(
            "topic orders.in cannot be created now", "send the command again when that is mended"
        ),
    ),
}
"""Members that the problem of a command has, if it was refused after it was accepted."""

NOT_CHECKED: Final[Mapping[Slug, JsonObject]] = {
    Slug.INVALID: _failed(
        Slug.INVALID,
        _error(
            "it was not compiled in the time that a check has",
            "split its queries into smaller steps or pipelines",
        ),
        Action.VALIDATE,
    ),
    Slug.TOO_MANY_CHECKS: _failed(
        Slug.TOO_MANY_CHECKS,
        _error("32 manifests are waiting for their check", "send it again in a moment"),
        Action.VALIDATE,
    ),
    Slug.INTERNAL: _failed(
        Slug.INTERNAL,
        _error(
            "the driver in which it was checked ended, and the next one too",
            "the log of the stage_runner says why",
        ),
        Action.VALIDATE,
    ),
}
"""The same for a manifest with a check that did not end."""

NOT_MAINTAINED: Final[Mapping[Slug, JsonObject]] = {
    Slug.TOO_MANY_CHECKS: _failed(
        Slug.TOO_MANY_CHECKS,
        _error("32 manifests are waiting for their check", "send it again in a moment"),
        Action.MAINTAIN,
    ),
    Slug.INTERNAL: _failed(
        Slug.INTERNAL,
        _error(
            "the driver that did it ended, and the next one too; what was done stays done",
            "the log of the stage_runner says why",
        ),
        Action.MAINTAIN,
    ),
}
"""The same for maintenance of a table that failed."""
