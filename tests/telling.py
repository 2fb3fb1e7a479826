"""What a run says while it runs: one that is cut off never comes to pytest's own summary."""

import pytest

SLOW_S = 60.0


class AtOnce:
    """Names what failed and what was slow as soon as it has ended."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        what = f"{report.nodeid} ({report.when}, {report.duration:.0f} s)"
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message if crash else report.longrepr).strip()
            self._say(f"failed: {what}: {message.splitlines()[0] if message else ''}")
        elif report.duration > SLOW_S:
            self._say(f"slow: {what}")

    def _say(self, line: str) -> None:
        self._terminal.write_line(f"\n{line}")
