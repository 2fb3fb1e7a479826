"""A checker that never turns red proves nothing: without its guard, each invariant is broken."""

import pytest

from sim.mutations import MUTATIONS, Mutation
from sim.simulation import simulate

SEEDS_MAX = 1000


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_without_its_guard_the_invariant_is_broken(mutation: Mutation) -> None:
    with mutation.applied():
        found = any(_broken(seed, mutation) for seed in range(SEEDS_MAX))

    assert found, f"{mutation.name}: {mutation.invariant} holds in all of {SEEDS_MAX} seeds"


def test_every_invariant_has_a_guard_that_it_needs() -> None:
    assert {mutation.invariant for mutation in MUTATIONS} == {f"I{n}" for n in range(1, 14)}


def _broken(seed: int, mutation: Mutation) -> bool:
    report = simulate(seed, only=mutation.only, rates=mutation.rates, wanted=mutation.invariant)
    return any(violation.invariant == mutation.invariant for violation in report.violations)
