"""What is compared with what: two turns, which take a round each in their time, and a target.

Only ratios of one run count: what the machine does meanwhile meets both.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.surroundings import Surroundings

Turn = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Each call measures once; `also` is measured and shown too, and is no part of the ratio."""

    ours: Turn
    theirs: Turn
    also: Mapping[str, Turn] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """`unit` says which way is good: for seconds the target is a most, for rates a least."""

    key: str
    what: str
    ours: str
    theirs: str
    unit: Literal["s", "/s"]
    target: float
    target_of: "Contest | None" = None
    """The contest of which the ratio in the same run is the target instead."""
    begin: Callable[[Surroundings], AbstractContextManager[Turns]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    contest: Contest
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    also: Mapping[str, tuple[float, ...]]

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def met(self) -> bool:
        if self.contest.unit == "s":
            return self.ratio <= self.contest.target
        return self.ratio >= self.contest.target


def with_targets(contests: Iterable[Contest]) -> tuple[Contest, ...]:
    """Return the contests, each after the one of which the ratio is its target."""
    found: dict[str, Contest] = {}
    for contest in contests:
        before = () if contest.target_of is None else (contest.target_of,)
        found |= {each.key: each for each in (*before, contest) if each.key not in found}
    return tuple(found.values())


def with_target(contest: Contest, results: Iterable[Result]) -> Contest:
    """Return the contest with the target that earlier results of the run give it."""
    if contest.target_of is None:
        return contest
    ratios = {result.contest.key: result.ratio for result in results}
    return replace(contest, target=round(ratios[contest.target_of.key], 2))


def measure(
    contest: Contest, around: Surroundings, rounds: int, tell: Callable[[str], None]
) -> Result:
    """Interleaved: whoever began a round comes last in the next one. The first is not counted."""
    times: dict[str, list[float]] = {}
    with contest.begin(around) as turns:
        named = {"ours": turns.ours, "theirs": turns.theirs, **turns.also}
        for number in range(rounds + 1):
            order = list(named.items())
            for name, turn in order if number % 2 else reversed(order):
                value = turn()
                tell(f"{contest.key} round {number} of {rounds}: {name} {shown(value, contest)}")
                if number:
                    times.setdefault(name, []).append(value)
    found = {name: tuple(values) for name, values in times.items()}
    ours, theirs = found.pop("ours"), found.pop("theirs")
    return Result(contest=contest, ours=ours, theirs=theirs, also=found)


def shown(value: float, contest: Contest) -> str:
    if contest.unit == "s":
        return f"{value * 1000:,.1f} ms" if value < 10 else f"{value:,.1f} s"
    return f"{value:,.0f} /s"
