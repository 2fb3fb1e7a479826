"""Shows the reports of the local stack while it starts and stops, one line per step.

On a terminal a step that takes long is shown as it goes; elsewhere at most every few seconds.
"""

import sys
import time
from typing import TYPE_CHECKING, Self

from waybill.cli import render

if TYPE_CHECKING:
    from rich.status import Status

    from waybill_local.reports import Report

WORKING_INTERVAL_S = 5.0  # of lines about one step where they cannot be redrawn
NEVER = float("-inf")


class Reports:
    """A view of the reports on stderr, each as it comes."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._status: Status | None = None
        self._shown_at: dict[str, float] = {}

    def __enter__(self) -> Self:
        if render.lively():
            self._status = render.console(sys.stderr).status(self._doing)
            self._status.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.settle()

    def settle(self) -> None:
        """Stop the spinner: nothing is running any more that a terminal should show."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, report: "Report") -> None:
        from waybill_local.reports import ReportKind, line

        text = render.clean(line(report))
        if report.kind is not ReportKind.WORKING:
            self._print(text)
        elif self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._shown_at.get(report.name, NEVER) >= WORKING_INTERVAL_S:
            self._shown_at[report.name] = time.monotonic()
            self._print(text)

    def _print(self, text: str) -> None:
        if self._status is not None:
            self._status.console.print(text, soft_wrap=True)
        else:
            render.talk(text)
