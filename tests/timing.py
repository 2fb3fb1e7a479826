"""How long each tier and file took, in seconds of tests and of CPU, against the budgets of tiers.

Each worker measures its own processes: itself, and all that it has started, also what has ended.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tiers import BUDGET_S, tier

OVER = 1.2
WORTH_TELLING_S = 60.0
SHOWN = 12
CPU = "cpu_s"
REPORT = Path(".bench") / "test_times.json"


class CpuByFile:
    """In a worker: the CPU that its processes took while the tests of a file ran."""

    def __init__(self, config: pytest.Config) -> None:
        self.used: dict[str, float] = defaultdict(float)
        self._config = config
        self._before = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        self._before = self._before or _cpu_s()
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now = _cpu_s()
            self.used[item.nodeid.partition("::")[0]] += max(0.0, now - self._before)
            self._before = now
        return result

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[CPU] = dict(self.used)


class Times:
    """In the process that reports: what all workers took."""

    def __init__(self, here: CpuByFile) -> None:
        """`here`: what this process measures, if it has no workers."""
        self._seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._cpu = here.used

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]][str(report.when)] += report.duration

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        for file, seconds in getattr(node, "workeroutput", {}).get(CPU, {}).items():
            self._cpu[file] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if sum(sum(times.values()) for times in self._seconds.values()) < WORTH_TELLING_S:
            return
        terminalreporter.section("time by tier")
        for line in (*self._tiers(), *self._slowest()):
            terminalreporter.write_line(line)
        REPORT.parent.mkdir(exist_ok=True)
        files = {
            file: {**times, "cpu": self._cpu[file]} for file, times in sorted(self._seconds.items())
        }
        REPORT.write_text(json.dumps(files, indent=1))

    def _tiers(self) -> Iterator[str]:
        for name, budget in BUDGET_S.items():
            of_tier = {file: times for file, times in self._seconds.items() if tier(file) == name}
            took = sum(sum(times.values()) for times in of_tier.values())
            cpu = sum(self._cpu[file] for file in of_tier)
            late = f"  WARNING: its budget is {budget} s" if took > OVER * budget else ""
            if of_tier:
                yield f"{name:<12} {took:6.0f} s of tests, {cpu:6.0f} s of CPU{late}"

    def _slowest(self) -> Iterator[str]:
        by_time = sorted(self._seconds.items(), key=lambda each: -sum(each[1].values()))
        for file, times in by_time[:SHOWN]:
            parts = ", ".join(f"{when} {seconds:.0f}" for when, seconds in times.items())
            yield f"{sum(times.values()):6.0f} s {file}: {parts}, CPU {self._cpu[file]:.0f}"


def _cpu_s() -> float:
    """Of this process and its descendants; one that has ended counts where it was waited for."""
    me = psutil.Process()
    return sum(map(_used_by, (me, *me.children(recursive=True))))


def _used_by(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
