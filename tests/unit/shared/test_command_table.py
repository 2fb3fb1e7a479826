"""The table of commands has each of them, and the routes ask for the keys that it names."""

from typing import get_args, get_type_hints

import pytest

from waybill_shared.contract.commands import (
    COMMANDS,
    STOP_MODES,
    ChangeBody,
    QuestionBody,
    StopMode,
)
from waybill_shared.contract.routes import scope_for
from waybill_shared.contract.words import Action

PIPELINE = "/v1/pipelines/{pipeline}"
ROUTES = {
    Action.APPLY: ("PUT", PIPELINE),
    Action.START: ("POST", f"{PIPELINE}/start"),
    Action.STOP: ("POST", f"{PIPELINE}/stop"),
    Action.PAUSE: ("POST", f"{PIPELINE}/pause"),
    Action.RESUME: ("POST", f"{PIPELINE}/resume"),
    Action.RESTART: ("POST", f"{PIPELINE}/restart"),
    Action.SET_OFFSETS: ("PATCH", f"{PIPELINE}/offsets"),
    Action.RESCALE: ("POST", f"{PIPELINE}/rescale"),
    Action.RENAME: ("POST", f"{PIPELINE}/rename"),
    Action.DELETE: ("DELETE", PIPELINE),
    Action.VALIDATE: ("POST", "/v1/validate"),
    Action.MAINTAIN: ("POST", f"{PIPELINE}/sinks/{{sink}}/maintain"),
    Action.LOGS: ("GET", f"{PIPELINE}/logs"),
}


def test_each_action_and_each_stop_mode_has_a_row() -> None:
    assert COMMANDS.keys() == {*Action} == ROUTES.keys()
    assert STOP_MODES.keys() == {*StopMode}


@pytest.mark.parametrize("action", Action)
def test_a_row_has_the_body_of_its_action_and_the_scope_of_its_route(action: Action) -> None:
    row = COMMANDS[action]
    (named,) = get_args(get_type_hints(row.body)["action"])
    assert named is action
    assert row.body in get_args(ChangeBody if row.changes_record else QuestionBody)
    assert scope_for(*ROUTES[action]) is row.scope
