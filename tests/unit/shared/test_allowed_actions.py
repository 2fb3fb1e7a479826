"""What can be done with a pipeline now, by its phase and by what is wanted of it."""

import pytest

from waybill_shared.contract.lifecycle import PHASES, RUN_FOLLOWS, STOPS, Phase, allowed_actions
from waybill_shared.contract.words import Action


@pytest.mark.parametrize("phase", Phase)
def test_nothing_is_allowed_when_a_pipeline_is_to_be_deleted(phase: Phase) -> None:
    assert allowed_actions(phase, "deleted") == ()


@pytest.mark.parametrize("phase", Phase)
def test_of_pause_and_resume_one_is_allowed_at_most(phase: Phase) -> None:
    for desired, without in (("running", Action.RESUME), ("paused", Action.PAUSE)):
        expected = set(PHASES[phase].allowed) - {without}
        assert set(allowed_actions(phase, desired)) == expected


def test_a_phase_of_a_newer_runner_allows_what_an_unknown_one_does() -> None:
    assert allowed_actions("Hibernating", "running") == allowed_actions(Phase.UNKNOWN, "running")


@pytest.mark.parametrize("phase", Phase)
def test_a_pipeline_is_rescaled_unless_it_ends_or_has_not_begun(phase: Phase) -> None:
    refused = phase in {Phase.CREATED, Phase.FINISHING, *STOPS - RUN_FOLLOWS}
    assert (Action.RESCALE in allowed_actions(phase, "running")) is not refused


def test_a_failed_pipeline_is_started_and_not_resumed() -> None:
    actions = allowed_actions(Phase.FAILED, "paused")
    assert Action.START in actions
    assert Action.RESUME not in actions
