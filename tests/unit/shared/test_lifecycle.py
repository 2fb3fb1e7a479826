"""The table of phases."""

import pytest

from waybill_shared.contract.lifecycle import (
    HEARTBEAT_AGE_MS_MAX,
    HEARTBEAT_INTERVAL_MS,
    MOVES,
    Phase,
)


def after(phase: Phase) -> set[Phase]:
    return {row.target for (source, _), row in MOVES.items() if source is phase} - {phase}


def test_every_phase_but_unknown_is_reached_from_created() -> None:
    seen, left = {Phase.CREATED}, [Phase.CREATED]
    while left:
        new = after(left.pop()) - seen
        seen |= new
        left += new
    assert seen == set(Phase) - {Phase.UNKNOWN}


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.UNKNOWN, Phase.STOPPED}))
def test_every_phase_leads_to_stopped(phase: Phase) -> None:
    seen, left = {phase}, [phase]
    while left:
        new = after(left.pop()) - seen
        seen |= new
        left += new
    assert Phase.STOPPED in seen


def test_no_phase_leads_back_to_created_or_to_unknown() -> None:
    assert not {row.target for row in MOVES.values()} & {Phase.CREATED, Phase.UNKNOWN}


def test_one_late_heartbeat_is_no_alarm() -> None:
    assert HEARTBEAT_AGE_MS_MAX > 2 * HEARTBEAT_INTERVAL_MS
