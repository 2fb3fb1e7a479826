"""A supervisor in a session of its own. Its caller reads its reports until the stack is ready.

`python -m waybill_local.detached FOLDER OPTIONS` is that supervisor: one JSON line per report.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from waybill_local import reports
from waybill_local.errors import StackError, log_tail
from waybill_local.folders import make_private, state_folder
from waybill_local.processes import die_with
from waybill_local.reports import STACK, Report, Reporter, ReportKind
from waybill_local.services import Service
from waybill_local.state import AlreadyRunning, load
from waybill_local.supervisor import Options, run

LOG = "supervisor.log"


def start(
    folder: Path,
    options: Options,
    report: Reporter,
    *,
    tied: bool,
    environment: Mapping[str, str],
) -> None:
    """Start a supervisor and return when its stack is ready. `tied`: it ends with this process.

    Raises what the supervisor raised. Stops the supervisor if this call is interrupted.
    """
    logs = make_private(state_folder(folder) / "logs")
    log = logs / LOG
    reading, writing = os.pipe()
    chosen = json.dumps({**asdict(options), "parent": os.getpid() if tied else 0})
    pid = _spawn(folder, chosen, environment, writing, log)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as lines:
            _follow(lines, report, log)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise


def _spawn(
    folder: Path, chosen: str, environment: Mapping[str, str], writing: int, log: Path
) -> int:
    """Start the supervisor and return its process id.

    It uses posix_spawn: the supervisor outlives us, so no object of ours has to own it.
    """
    module = "waybill_local.detached"
    command = [sys.executable, "-P", "-m", module, str(folder.resolve()), chosen]
    mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, str(log), mode, 0o600),
    ]
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions)


def _follow(lines: Iterator[str], report: Reporter, log: Path) -> None:
    for text in lines:
        message = json.loads(text)
        if "error" in message:
            raise StackError(**message["error"])
        if "running" in message:
            raise AlreadyRunning(load(Path(message["running"])))
        told = reports.from_json(text)
        report(told)
        if told.name == STACK and told.kind is ReportKind.READY:
            return
    raise StackError(
        "the stack's supervisor ended while starting",
        why=log_tail(log),
        fix="`waybill up` without --detach shows more",
    )


def main() -> int:
    folder, chosen = Path(sys.argv[1]), json.loads(sys.argv[2])
    parent = chosen.pop("parent")
    services = tuple(Service(**service) for service in chosen.pop("services"))
    os.setsid()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the stack sets its handler
    if parent:
        die_with(parent, signal.SIGTERM)()
    try:
        run(folder, Options(**chosen, services=services), _Teller(sys.stdout))
    except AlreadyRunning:
        _write(sys.stdout, json.dumps({"running": str(state_folder(folder))}))
        return 1
    except StackError as error:
        told = {"what": error.what, "why": error.why, "fix": error.fix}
        _write(sys.stdout, json.dumps({"error": told}))
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


class _Teller:
    """Writes reports as JSON to the caller, and after the stack is ready as text to the log."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.followed = True

    def __call__(self, report: Report) -> None:
        if not self.followed:
            print(reports.line(report), file=sys.stderr, flush=True)
            return
        _write(self.out, reports.to_json(report))
        if report.name == STACK and report.kind is ReportKind.READY:
            self.followed = False
            os.dup2(sys.stderr.fileno(), self.out.fileno())


def _write(out: TextIO, line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody reads it any more
        print(line, file=out, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
