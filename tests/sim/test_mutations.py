"""A checker that never turns red proves nothing: without its guard, each invariant is broken."""

import pytest

from sim.mutation import Mutation
from sim.mutations import MUTATIONS
from sim.simulation import simulate

SEEDS_MAX = 1000


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_without_its_guard_the_invariant_is_broken(mutation: Mutation) -> None:
    with mutation.applied():
        seeds = (mutation.found_by, *range(SEEDS_MAX))
        seed = next((seed for seed in seeds if _broken(seed, mutation)), None)

    assert seed is not None, f"{mutation.name}: {mutation.invariant} holds in {SEEDS_MAX} seeds"
    if seed != mutation.found_by:
        print(f"{mutation.name}: write found_by={seed}, it was {mutation.found_by}")


def test_every_invariant_has_a_guard_that_it_needs() -> None:
    assert {mutation.invariant for mutation in MUTATIONS} == {f"I{n}" for n in range(1, 20)}


def _broken(seed: int, mutation: Mutation) -> bool:
    report = simulate(seed, only=mutation.only, rates=mutation.rates, wanted=mutation.invariant)
    return any(violation.invariant == mutation.invariant for violation in report.violations)
