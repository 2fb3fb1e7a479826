"""Drivers and who wants them, around `decide`: what is true, and what may be asked of them."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from builders import NOW
from waybill_stage_runner.core.pool.assign import BEGINS_MS_MAX, SPARE_AFTER_MS
from waybill_stage_runner.core.pool.decide import decide
from waybill_stage_runner.core.pool.model import (
    AssignCheck,
    AssignRun,
    DriverExited,
    DriverReady,
    EndAll,
    EndProcess,
    KillProcess,
    Limits,
    Pool,
    PoolAction,
    PoolEvent,
    ReportCheckFailed,
    ReportQueuePosition,
    ReportRunEnded,
    RunEnded,
    RunRequested,
    StartProcess,
    StopRun,
)


@dataclass
class Process:
    """What is true of it, whatever `decide` believes."""

    id: str
    spark: bool
    cores: int | None = None
    ready: bool = False
    asked_to_end: bool = False
    killed: bool = False
    runs: str | None = None
    begun: bool = False  # its run
    given_at: int = 0  # its run or check
    checks: str | None = None
    kept_for: str | None = None
    kept_until: int = 0

    def serves(self, pipeline_uid: str, now: int) -> bool:
        """Whether a run or check of this pipeline may be given to it."""
        idle = self.ready and self.runs is None and self.checks is None
        kept = self.kept_for not in (None, pipeline_uid) and now < self.kept_until
        return idle and not kept and not self.asked_to_end and not self.killed


class PoolWorld(RuleBasedStateMachine):
    """Asserts of each action that it may be asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(limits=Limits(spares=0, starts=1))
        self.now = NOW
        self.ended = self.broken = False
        self.processes: dict[str, Process] = {}
        self.wanted: dict[str, RunRequested] = {}  # runs that are not over
        self.checks: dict[str, str] = {}  # those that are not answered, and their pipelines
        self.cores: dict[str, int | None] = {}  # of the runs that follow checks
        self.checks_wanted = 0
        self.given: list[str] = []  # checks
        self.places: dict[str, int] = {}  # what was told; 0 counts from the beginning
        self.taken_at = self.now - SPARE_AFTER_MS

    def on(self, event: PoolEvent) -> None:
        self.broken = True
        self.pool, actions = decide(self.pool, event, self.now)
        for action in actions:
            self.does(action)
        self.broken = False

    def does(self, action: PoolAction) -> None:
        match action:
            case StartProcess(driver_id=driver_id, spark=spark, cores=cores):
                assert not self.ended
                assert driver_id not in self.processes
                assert not spark or self.is_due(cores)
                self.processes[driver_id] = Process(driver_id, spark, cores)
            case AssignRun(driver_id=driver_id, pipeline_uid=uid):
                self.gives_run(self.processes[driver_id], uid)
            case AssignCheck(driver_id=driver_id, check_id=check_id):
                self.gives_check(self.processes[driver_id], check_id)
            case StopRun(driver_id=driver_id, pipeline_uid=uid):
                assert self.processes[driver_id].runs == uid
            case EndProcess(driver_id=driver_id):
                assert self.processes[driver_id].runs is None
                assert not self.processes[driver_id].asked_to_end
                self.processes[driver_id].asked_to_end = True
            case KillProcess(driver_id=driver_id):
                self.processes[driver_id].killed = True
            case ReportQueuePosition(pipeline_uid=uid, queue_position=place):
                assert uid in self.wanted
                assert self.places.get(uid, 0) != place
                self.places[uid] = place
            case ReportRunEnded(pipeline_uid=uid):
                del self.wanted[uid]  # it is not told twice
                self.places.pop(uid, None)
            case ReportCheckFailed(check_id=check_id):
                del self.checks[check_id]

    def gives_run(self, process: Process, uid: str) -> None:
        request = self.wanted[uid]
        assert not self.ended
        assert process.serves(uid, self.now)
        assert process.spark is not request.closing
        assert request.closing or process.cores == request.cores
        assert not self.has_run(uid), "two runs of one pipeline"
        if not request.urgent and not request.closing and process.kept_for != uid:
            others = (other for other in self.wanted.values() if other.cores == process.cores)
            urgent = [other.pipeline_uid for other in others if other.urgent]
            assert not any(self.could_run(each) for each in urgent)
        process.runs, process.kept_for, process.begun = uid, None, False
        self.taken_at = process.given_at = self.now

    def gives_check(self, process: Process, check_id: str) -> None:
        assert not self.ended
        assert process.spark
        assert process.serves(self.checks[check_id], self.now)
        assert self.given.count(check_id) <= 1, "repeated more than once"
        self.given.append(check_id)
        process.checks, process.kept_for = check_id, None
        self.taken_at = self.now

    def is_due(self, cores: int | None) -> bool:
        """Whether one more driver may start: for who waits at once, as a spare a little later."""
        starting = sum(each.spark and each.cores == cores for each in self.starting())
        waits = starting < sum(job.cores == cores for job in self.pool.queue)
        return waits or (cores is None and self.now >= self.taken_at + SPARE_AFTER_MS)

    def begins_now(self, process: Process) -> bool:
        """Whether it has as much to do as one that starts."""
        if process.killed or process.asked_to_end or not process.spark:
            return False
        waits = process.runs is not None and not process.begun
        return process.checks is not None or (waits and self.now < process.given_at + BEGINS_MS_MAX)

    def starts_now(self) -> int:
        return sum(process.spark for process in self.starting())

    def has_run(self, uid: str) -> bool:
        return any(process.runs == uid for process in self.processes.values())

    def could_run(self, uid: str) -> bool:
        """A driver that was killed may still have it; so may a closing one that never began."""
        return not any(driver.has_run(uid) for driver in self.pool.drivers.values())

    def one_of(self, processes: list[Process], data: st.DataObject) -> Process:
        return self.processes[data.draw(st.sampled_from([process.id for process in processes]))]

    def gets_ready(self, process: Process) -> None:
        process.ready = not process.killed and not process.asked_to_end  # else it is too late
        self.on(DriverReady(driver_id=process.id))

    def finishes(self, process: Process) -> None:
        """One that is killed has its run, for all that anybody knows, until it is gone."""
        process.runs = process.runs if process.killed else None
        self.on(RunEnded(driver_id=process.id))

    def goes(self, driver_id: str, exit_code: int) -> None:
        del self.processes[driver_id]
        self.on(DriverExited(driver_id=driver_id, exit_code=exit_code))

    def ends_all(self) -> None:
        self.ended = True
        self.checks.clear()
        self.on(EndAll())

    def starting(self) -> list[Process]:
        return [process for process in self.processes.values() if not process.ready]

    def checking(self) -> list[Process]:
        return [process for process in self.processes.values() if process.checks is not None]

    def running(self) -> list[Process]:
        return [process for process in self.processes.values() if process.runs is not None]
