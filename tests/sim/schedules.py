"""I16: what became of each time of a schedule.

A time that has come begins a run, or stops one so that the next begins, or is skipped: an event
says so. No other time does that, and none does it twice. Several that nobody was there for count
together. Where a person asks for a run, that makes up the times that have come.
"""

from collections.abc import Callable
from typing import Final, Protocol

from sim.clocks import Clocks, TrueClock
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_shared.contract.moments import format_moment
from waybill_stage_runner.core.pipelines.states import PipelineState

PERIOD_MS: Final = 60_000
"""Of each schedule: a cron line has the same times as `every` here."""
LATE_MS: Final = 30_000  # after so long in a calm, what a time does is done
SAID: Final = "scheduled for "


class Around(Protocol):
    @property
    def clock(self) -> TrueClock: ...

    @property
    def clocks(self) -> Clocks: ...


class Schedules:
    def __init__(self, world: Around, report: Callable[[str, str], None]) -> None:
        self._world = world
        self._report = report
        self._newest: dict[str, PipelineRecord] = {}
        self._counted: dict[tuple[str, str], PipelineState] = {}
        """By pipeline and time, the decision that said what the time does."""
        self._due: dict[str, tuple[str, int]] = {}
        """The time for which a run is to begin, and when that was said."""

    def said(self, state: PipelineState, event: LifecycleEvent) -> None:
        """Check an event, which may be about a time. One that is sent again is the same."""
        uid, time = state.record.pipeline_uid, _time_in(event)
        if time is None or self._counted.get((uid, time)) is state:
            return
        if (uid, time) in self._counted:
            self._report("I16", f"{time} counts twice: {event.reason}")
        self._counted[uid, time] = state
        if event.kind == "transition":
            if uid in self._due:
                self._report("I16", f"no run has begun for {self._due[uid][0]}: {event.reason}")
            self._due[uid] = (time, self._world.clock.now)

    def recorded(self, record: PipelineRecord) -> None:
        """Check the next time in a record that is written."""
        uid = record.pipeline_uid
        before = self._newest.get(uid)
        self._newest[uid] = record
        latest = self._world.clocks.runner.latest_ms
        if record.next_run_at is not None and record.next_run_at > latest + PERIOD_MS:
            self._report("I16", f"times before {format_moment(record.next_run_at)} are forgotten")
        if before is None:
            return
        commanded = record.commanded_at != before.commanded_at
        if commanded:
            self._due.pop(uid, None)
        due, following = before.next_run_at, record.next_run_at
        if due is None or following == due:
            return
        if commanded:
            self._check_commanded(before, record, due, latest)
        elif (uid, format_moment(due)) not in self._counted:
            self._report("I16", f"{format_moment(due)} is forgotten")
        elif due > latest:
            self._report("I16", f"{format_moment(due)} counts before it has come")

    def await_next(self) -> None:
        """Let the time pass until the next one of some schedule."""
        running = [each for each in self._newest.values() if each.desired == "running"]
        times = [each.next_run_at for each in running if each.next_run_at is not None]
        self._world.clock.now = max(self._world.clock.now, min(times, default=0))

    def begun(self, uid: str) -> None:
        """Note that a driver begins a run."""
        self._due.pop(uid, None)

    def check(self) -> None:
        """Check in the end that nothing is still to be done for a time that came long ago."""
        now = self._world.clock.now
        for uid, record in self._newest.items():
            if uid in self._due and now - self._due[uid][1] > LATE_MS:
                self._report("I16", f"no run has begun for {self._due[uid][0]}")
            due = record.next_run_at
            if due is not None and record.desired == "running" and now - due > LATE_MS:
                self._report("I16", f"nothing happens at {format_moment(due)}")

    def _check_commanded(
        self, before: PipelineRecord, record: PipelineRecord, due: int, latest: int
    ) -> None:
        """A person may stop or change the schedule; else only a run makes up times."""
        following = record.next_run_at
        if following is None or _schedule(record) != _schedule(before):
            return
        if record.finished or due > latest or following < due:
            self._report("I16", f"{format_moment(due)} is forgotten by a command")


def _schedule(record: PipelineRecord) -> ScheduleSettings | None:
    return record.manifest.model.schedule


def _time_in(event: LifecycleEvent) -> str | None:
    """Return the time of which the event says what it does: it is skipped, or a run is to begin."""
    reason, finished = event.reason or "", event.phase_from == "Finished"
    counts = event.kind == "schedule" or finished or reason.startswith("replaced")
    return reason.partition(SAID)[2] if counts and SAID in reason else None
