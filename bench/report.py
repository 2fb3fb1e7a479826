"""What a run of measurements leaves: a table to read, JSON to compare, a plot per contest."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import psutil

from bench.contest import Result, shown
from waybill_shared.contract.version import VERSION

HEADINGS: Final = ("", "ours / theirs", "ours", "theirs", "ratio", "least to most", "n", "target")
GIB: Final = 2**30


def table(results: Sequence[Result]) -> str:
    """Markdown, so that it can be read here and pasted there."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_line, results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> str:
    memory = psutil.virtual_memory().total / GIB
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}, Waybill {VERSION}"
    )


def save(results: Sequence[Result], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine(), "results": [_as_json(result) for result in results]}
    (folder / "results.json").write_text(json.dumps(found, indent=2) + "\n")
    for result in results:
        _plot(result, folder / f"{result.contest.key}.png")


def _line(result: Result) -> tuple[str, ...]:
    contest = result.contest
    sign = "≤" if contest.unit == "s" else "≥"
    return (
        contest.key,
        f"{contest.what}: {contest.ours} / {contest.theirs}",
        shown(statistics.median(result.ours), contest),
        shown(statistics.median(result.theirs), contest),
        f"{result.ratio:.2f}",
        f"{min(result.ratios):.2f} to {max(result.ratios):.2f}",
        str(len(result.ratios)),
        f"{sign} {contest.target}{'' if result.met else ', missed'}",
    )


def _as_json(result: Result) -> dict[str, object]:
    contest = result.contest
    return {
        "key": contest.key,
        "what": contest.what,
        "unit": contest.unit,
        "target": contest.target,
        "met": result.met,
        "ratio": result.ratio,
        "ratios": result.ratios,
        "rounds": {contest.ours: result.ours, contest.theirs: result.theirs, **result.also},
    }


def _plot(result: Result, path: Path) -> None:
    from matplotlib.figure import Figure

    contest = result.contest
    rounds = {contest.ours: result.ours, contest.theirs: result.theirs, **result.also}
    figure = Figure(figsize=(9, 0.8 + 0.7 * len(rounds)), layout="constrained")
    axes = figure.subplots()
    for place, values in enumerate(rounds.values()):
        axes.barh(place, statistics.median(values), height=0.6, alpha=0.5)
        axes.plot(values, [place] * len(values), "k|", markersize=14)
    axes.set_yticks(range(len(rounds)), list(_wrapped(rounds)))
    axes.invert_yaxis()
    axes.set_xlabel("seconds" if contest.unit == "s" else "per second")
    axes.set_title(f"{contest.key}: {contest.what}; ratio {result.ratio:.2f}", loc="left")
    figure.savefig(path, dpi=120)


def _wrapped(names: Iterable[str]) -> Iterable[str]:
    return (name.replace(": ", ":\n").replace(", ", ",\n") for name in names)
