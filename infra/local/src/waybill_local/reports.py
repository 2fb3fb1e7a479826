"""The reports of a stack to its caller, each about one small fact.

Prints nothing itself: a callback renders each report, or writes it to a log.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum


class ReportKind(StrEnum):
    """The news of a report about the thing that it names."""

    WORKING = "working"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    KILLED = "killed"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report. `seconds` is how long the step took. `text` is for people."""

    kind: ReportKind
    name: str
    version: str = ""
    address: str = ""
    seconds: float | None = None
    text: str = ""


Reporter = Callable[[Report], None]

STACK = "stack"
"""The name in reports about the whole stack. Its READY is the last report of a start."""


def one_at_a_time(report: Reporter) -> Reporter:
    """Return a reporter for several threads: each report is finished before the next begins."""
    lock = threading.Lock()

    def report_one(each: Report) -> None:
        with lock:
            report(each)

    return report_one


def line(report: Report) -> str:
    """Return an aligned line, such as `kafka          4.3.1  127.0.0.1:9092   ready  2.4 s`."""
    took = "" if report.seconds is None else f"{report.seconds:5.1f} s"
    told = report.text or report.kind
    head = f"{report.name:<14} {report.version:<8} {report.address:<22}"
    return f"{head} {told:<12} {took}".rstrip()


def to_json(report: Report) -> str:
    return json.dumps(asdict(report))


def from_json(text: str) -> Report:
    fields = json.loads(text)
    return Report(**{**fields, "kind": ReportKind(fields["kind"])})
