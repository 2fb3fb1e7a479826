"""What `make bench` makes of the figures that it measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from bench.contest import Contest, Result, Turns, measure, with_target, with_targets
from bench.profile import parts
from bench.profile import table as profile_table
from bench.report import save, table
from bench.surroundings import Surroundings
from waybill_shared.contract.sealing import KeyRing


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    ring = KeyRing(active=1, keys={1: b"x" * 32})
    return Surroundings(kafka="", redis="", ring=ring, folder=tmp_path, environment={})


def contest(
    ours: list[float], theirs: list[float], unit: Literal["s", "/s"], target: float
) -> Contest:
    @contextmanager
    def begin(around: Surroundings) -> Iterator[Turns]:
        mine, other = iter(ours), iter(theirs)
        yield Turns(ours=lambda: next(mine), theirs=lambda: next(other))

    return Contest(
        key="R0", what="a thing", ours="we", theirs="they", unit=unit, target=target, begin=begin
    )


def measured(found: Contest, around: Surroundings, rounds: int) -> Result:
    return measure(found, around, rounds, lambda text: None)


def test_ratio_is_the_median_of_the_rounds_and_the_first_is_not_counted(
    around: Surroundings,
) -> None:
    result = measured(contest([9, 1, 2, 3], [1, 10, 10, 10], "s", 0.2), around, 3)
    assert result.ratios == (0.1, 0.2, 0.3)
    assert result.ratio == 0.2
    assert result.met


def test_of_rates_the_target_is_a_least(around: Surroundings) -> None:
    assert measured(contest([5, 5], [10, 10], "/s", 0.5), around, 1).met
    assert not measured(contest([4, 4], [10, 10], "/s", 0.5), around, 1).met


def test_a_target_is_the_ratio_of_another_contest_which_is_measured_before(
    around: Surroundings,
) -> None:
    first = contest([1, 1, 1], [1, 2, 4], "/s", 0.9)
    second = replace(contest([5, 5], [10, 10], "/s", 0.9), key="R00", target_of=first)
    assert with_targets([second, first]) == (first, second)
    assert with_targets([first]) == (first,)
    results = [measured(first, around, 2)]
    assert with_target(second, results).target == pytest.approx(0.38, abs=0.01)
    assert with_target(first, results) == first


def test_report_has_a_line_and_a_plot_for_each(around: Surroundings, tmp_path: Path) -> None:
    result = measured(contest([1, 0.5], [1, 1.0], "s", 0.2), around, 1)
    assert "| R0 | a thing: we / they | 500.0 ms | 1,000.0 ms | 0.50 |" in table([result])
    assert "≤ 0.2, missed" in table([result])
    save([result], tmp_path / "out")
    assert (tmp_path / "out" / "R0.png").stat().st_size > 1_000
    assert '"ratio": 0.5' in (tmp_path / "out" / "results.json").read_text()


def test_profile_has_the_medians_between_edges_and_since_the_beginning() -> None:
    times = [(1.0, 3.0, 4.0, 8.0, 9.0, 10.0, 20.0), (2.0, 5.0, 7.0, 12.0, 14.0, 16.0, 30.0)]
    assert parts(times) == [1.5, 2.5, 1.5, 4.5, 1.5, 1.5, 12.0]
    assert "| the token is answered | token_tracker, status | 12.0 | 25.0 |" in profile_table(times)
