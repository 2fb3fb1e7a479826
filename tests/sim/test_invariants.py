"""The promise of Waybill in scenarios of faults: `sim.checker` says what must hold."""

import pytest

from sim.simulation import simulate

SEEDS = 1_000
CHUNK = 50


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_invariant_holds(first: int) -> None:
    failed = [r for seed in range(first, first + CHUNK) if (r := simulate(seed)).violations]

    assert not failed, "\n".join(str(report) for report in failed)


def test_a_seed_always_tells_the_same_story() -> None:
    assert [*simulate(7).trace] == [*simulate(7).trace]
