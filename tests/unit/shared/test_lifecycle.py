"""The table of phases."""

import pytest

from waybill_shared.contract.lifecycle import (
    HEARTBEAT_AGE_MS_MAX,
    HEARTBEAT_INTERVAL_MS,
    TRANSITIONS,
    Phase,
)


def test_every_phase_has_its_moves() -> None:
    assert set(TRANSITIONS) == set(Phase)


def test_every_phase_but_unknown_is_reached_from_created() -> None:
    seen, left = {Phase.CREATED}, [Phase.CREATED]
    while left:
        new = TRANSITIONS[left.pop()] - seen
        seen |= new
        left += new
    assert seen == set(Phase) - {Phase.UNKNOWN}


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.UNKNOWN, Phase.STOPPED}))
def test_every_phase_leads_to_stopped(phase: Phase) -> None:
    seen, left = {phase}, [phase]
    while left:
        new = TRANSITIONS[left.pop()] - seen
        seen |= new
        left += new
    assert Phase.STOPPED in seen


def test_no_phase_leads_to_itself_or_back_to_created() -> None:
    for phase, after in TRANSITIONS.items():
        assert phase not in after
        assert Phase.CREATED not in after
        assert Phase.UNKNOWN not in after


def test_one_late_heartbeat_is_no_alarm() -> None:
    assert HEARTBEAT_AGE_MS_MAX > 2 * HEARTBEAT_INTERVAL_MS
