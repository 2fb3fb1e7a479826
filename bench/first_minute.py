"""Measures `make demo` in a fresh clone with nothing cached, and once more in the same clone.

`python -m bench.first_minute [-n 5]`: prints the table of docs/first-steps.md. Seconds, and those
of CPU, of the whole and by part; megabytes that came over the network, which counts what others on
this machine load meanwhile, and that are on the disk afterwards, hard links counted once.
"""

import argparse
import contextlib
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from bench.report import machine

ROOT: Final = Path(__file__).parents[1]
OUT: Final = Path(".bench") / "first_minute.json"
PR_SET_CHILD_SUBREAPER: Final = 36
MEGA: Final = 1_000_000
STEPS: Final[Mapping[str, str]] = {
    "python": "an environment, and uv",
    "packages": "packages",
    "jars": "jars",
    "archive": "the archive of Spark's classes",
    "stack": "the stack",
    "apply": "`apply`, until the pipeline is `Running`",
    "follow": "from sending until the first token is complete",
    "stop": "a second record, and the stop",
}
"""By the word with which `make demo` prints the line of its end, the first time that it comes."""
REST: Final = "all else"
WHOLE: Final = "the whole"
MOVED: Final = "over the network, MB"
KEPT: Final = "on the disk, MB"
NAMES: Final = (WHOLE, *STEPS.values(), REST)
ROWS: Final = (*NAMES, MOVED, KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One `make demo`: what each part took, and what it left."""

    parts: dict[str, Took] = field(default_factory=dict)
    moved_mb: float
    kept_mb: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.first_minute", description=__doc__)
    parser.add_argument("-n", type=int, default=1, help="fresh clones, one after the other")
    parser.add_argument("--folder", type=Path, help="where they are made (a temporary folder)")
    chosen = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans are ours: their CPU counts too
    first, again = list[Run](), list[Run]()
    for number in range(chosen.n):
        print(f"round {number + 1} of {chosen.n}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="waybill-first-", dir=chosen.folder) as name:
            folder = Path(name)
            _clone(folder)
            first.append(_demo(folder))
            again.append(_demo(folder))
    OUT.parent.mkdir(exist_ok=True)
    found = {"machine": machine(), "first": first, "again": again}
    OUT.write_text(json.dumps(found, default=asdict, indent=2) + "\n")
    print(f"{machine()}; load at the end {os.getloadavg()[0]:.1f}; medians, n = {chosen.n}\n")
    print(table(first, again))
    return 0


def table(first: Sequence[Run], again: Sequence[Run]) -> str:
    """Return the table in Markdown: seconds, and those of CPU in brackets."""
    both = first, again
    rows = [
        ("", "first run, nothing cached", "again"),
        ("---",) * 3,
        *((name, *(_median(runs, name) for runs in both)) for name in NAMES),
        (MOVED, *(f"{median(run.moved_mb for run in runs):,.0f}" for runs in both)),
        (KEPT, *(f"{median(run.kept_mb for run in runs):,.0f}" for runs in both)),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _median(runs: Sequence[Run], name: str) -> str:
    found = [run.parts[name] for run in runs if name in run.parts]
    if not found:
        return ""
    wall, cpu = median(each.wall_s for each in found), median(each.cpu_s for each in found)
    return f"{wall:.1f} s ({cpu:.1f} s)"


def _clone(folder: Path) -> None:
    command = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder / "waybill")]
    subprocess.run(command, check=True)
    (folder / "tmp").mkdir()


def _demo(folder: Path) -> Run:
    """Run `make demo` in the clone, with caches of its own and without what could warm it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("WAYBILL_", "PYTHON"))}
    environment |= {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "UV_CACHE_DIR": str(folder / "cache" / "uv"),
        "PIP_CACHE_DIR": str(folder / "cache" / "pip"),
        "TMPDIR": str(folder / "tmp"),
    }
    moved = _moved_mb()
    parts = _watch(["make", "demo"], folder / "waybill", environment)
    return Run(parts=parts, moved_mb=_moved_mb() - moved, kept_mb=_kept_mb(folder))


def _watch(command: list[str], folder: Path, environment: dict[str, str]) -> dict[str, Took]:
    """Return what each part took: it ends with the first line that begins with its word."""
    began = last = Took(wall_s=time.monotonic(), cpu_s=_cpu_s())
    parts = dict[str, Took]()
    for line in _lines(command, folder, environment):
        print(line, file=sys.stderr)
        now = Took(wall_s=time.monotonic(), cpu_s=_cpu_s())
        if (name := ended(line)) and name not in parts:
            parts[name] = _between(last, now)
            last = now
    whole = _between(began, Took(wall_s=time.monotonic(), cpu_s=_cpu_s()))
    known = list(parts.values())
    rest = Took(
        wall_s=whole.wall_s - sum(each.wall_s for each in known),
        cpu_s=whole.cpu_s - sum(each.cpu_s for each in known),
    )
    return {WHOLE: whole, **parts, REST: rest}


def ended(line: str) -> str | None:
    """Return the part whose end a line of `make demo` reports, if it does."""
    words = line.split()
    if not words or not re.search(r"\d+\.\d s$", line):
        return STEPS["python"] if words[:1] == ["packages"] else None
    return STEPS.get(words[0])


def _lines(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield from (line.rstrip("\n") for line in process.stdout)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass  # an orphan that has ended


def _between(begin: Took, end: Took) -> Took:
    return Took(wall_s=end.wall_s - begin.wall_s, cpu_s=end.cpu_s - begin.cpu_s)


def _cpu_s() -> float:
    """Return what all processes that we started have used, those that have ended too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += times.user + times.system + times.children_user + times.children_system
    return used


def _moved_mb() -> float:
    counters = psutil.net_io_counters(pernic=True)
    return sum(each.bytes_recv for name, each in counters.items() if name != "lo") / MEGA


def _kept_mb(folder: Path) -> float:
    """Return what is below `folder`, in blocks of the disk, and each file once."""
    files = {
        (found.st_dev, found.st_ino): found.st_blocks * 512
        for root, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if (found := (Path(root) / name).lstat())
    }
    return sum(files.values()) / MEGA


if __name__ == "__main__":
    raise SystemExit(main())
