"""Starts the child processes of one stack, waits for them, restarts them if they crash, stops them.

Knows nothing of what they do. A spec says whether its process may be restarted after a crash.
"""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from waybill_local import room
from waybill_local.errors import StackError, log_tail
from waybill_local.processes import Child, ChildSpec, kill_group, start, stop, wait_ready
from waybill_local.reports import Report, Reporter, ReportKind
from waybill_local.state import ProcessState, StackPhase

RESTART_DELAY_S_MIN = 0.5
RESTART_DELAY_S_MAX = 30.0
HEALTHY_AFTER_S = 60.0  # a process that ran this long has earned a quick restart again


@dataclass(slots=True, kw_only=True)
class Member:
    """A spec, its current process and its phase."""

    child: Child
    began: float
    phase: StackPhase = StackPhase.STARTING
    was_ready: bool = False
    delay_s: float = 0.0
    restart_due: float | None = None

    @property
    def spec(self) -> ChildSpec:
        return self.child.spec

    @property
    def ended_well(self) -> bool:
        """True if it was ready once, and ended in time because it was asked to."""
        code = self.child.process.returncode
        return self.was_ready and code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def next_delay_s(last_s: float, *, ran_s: float, most_s: float = RESTART_DELAY_S_MAX) -> float:
    """Return the delay before a restart. It doubles with each crash, between two limits.

    A process that ran for a long time (HEALTHY_AFTER_S) gets the shortest delay again.
    """
    if ran_s >= HEALTHY_AFTER_S:
        return RESTART_DELAY_S_MIN
    return min(max(last_s * 2, RESTART_DELAY_S_MIN), most_s)


@dataclass(slots=True, kw_only=True)
class Fleet:
    """The processes of a stack, by name.

    `changed` is called after each change of a phase. `signals` gets a number for each request to
    stop.
    """

    logs: Path
    report: Reporter
    changed: Callable[[], None]
    signals: Sequence[int]
    restart_delay_s_max: float = RESTART_DELAY_S_MAX
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def stopping(self) -> bool:
        return bool(self.signals)

    @property
    def states(self) -> tuple[ProcessState, ...]:
        return tuple(
            ProcessState(
                name=name,
                pid=member.child.process.pid,
                began=member.began,
                address=member.spec.address,
                version=member.spec.version,
                state=member.phase,
            )
            for name, member in self.members.items()
        )

    def start(self, spec: ChildSpec) -> None:
        """Start `spec` with an empty log. The log of the last run is kept next to it."""
        log = self.logs / f"{spec.name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        self.members[spec.name] = _member(spec, self.logs)
        self.changed()

    def wait_ready(self, names: Sequence[str]) -> None:
        """Return when all of `names` are ready. Raise at the first that cannot be."""
        children = [self.members[name].child for name in names]
        wait_ready(
            children,
            interrupted=lambda: self.stopping,
            on_ready=lambda child: self._ready(self.members[child.spec.name]),
        )

    def late(self, names: Sequence[str]) -> list[str]:
        """Return those of `names` that have never been ready."""
        return [name for name in names if not self.members[name].was_ready]

    def watch(self) -> None:
        """Look at every process once, and restart those that crashed after a delay.

        Raise StackError if one ended that may not be restarted.
        """
        for name, member in list(self.members.items()):
            if member.restart_due is not None:
                if time.monotonic() >= member.restart_due:
                    self._restart(name, member)
            elif not member.child.alive:
                self._note_crash(member)
            elif member.phase is StackPhase.RESTARTING and member.spec.wrong() is None:
                self._ready(member)

    def stop(self, names: Sequence[str]) -> None:
        """Stop those of `names` that were started. A second signal kills them at once."""
        members = [self.members[name] for name in names if name in self.members]
        stop(
            [member.child for member in members],
            forced=lambda: len(self.signals) > 1,
            on_stopped=self._note_stop,
        )

    def _ready(self, member: Member) -> None:
        member.phase, member.was_ready = StackPhase.READY, True
        self.changed()
        self._report(member, ReportKind.READY, seconds=member.child.age_s)

    def _note_crash(self, member: Member) -> None:
        spec, code = member.spec, member.child.process.returncode
        kill_group(member.child.process.pid)  # its children must not run next to the new process
        if not spec.restarts:
            raise StackError(
                f"{spec.name} ended (exit code {code})",
                why=log_tail(member.child.log),
                fix=room.fix_of(self.logs, spec.fix),
            )
        ran_s, most_s = member.child.age_s, self.restart_delay_s_max
        member.delay_s = next_delay_s(member.delay_s, ran_s=ran_s, most_s=most_s)
        member.restart_due = time.monotonic() + member.delay_s
        member.phase = StackPhase.RESTARTING
        self.changed()
        text = f"ended (exit code {code}), starts again in {member.delay_s:.1f} s"
        self._report(member, ReportKind.RESTARTING, text=f"{text}; {member.child.log}")

    def _restart(self, name: str, member: Member) -> None:
        again = _member(member.spec, self.logs)
        again.phase, again.delay_s = StackPhase.RESTARTING, member.delay_s
        self.members[name] = again
        self.changed()

    def _note_stop(self, child: Child, graceful: bool) -> None:
        member = self.members[child.spec.name]
        member.phase = StackPhase.STOPPED
        self.changed()
        self._report(member, ReportKind.STOPPED if graceful else ReportKind.KILLED)

    def _report(
        self, member: Member, kind: ReportKind, *, text: str = "", seconds: float | None = None
    ) -> None:
        spec = member.spec
        self.report(
            Report(
                kind=kind,
                name=spec.name,
                version=spec.version,
                address=spec.address,
                seconds=seconds,
                text=text,
            )
        )


def _member(spec: ChildSpec, logs: Path) -> Member:
    child = start(spec, logs)
    return Member(child=child, began=_began(child.process.pid))


def _began(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0  # it ended at once; `wait_ready` or `watch` reports that
