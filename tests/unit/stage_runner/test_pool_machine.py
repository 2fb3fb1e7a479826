"""Any sequence of requests and reports of processes: one run each, each reported once."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from strategies import patiently
from unit.stage_runner.pool_world import PoolWorld
from waybill_shared.contract.commands import StopMode
from waybill_stage_runner.core.pool.model import (
    CheckCancelled,
    CheckDone,
    CheckJob,
    CheckRequested,
    CheckStarted,
    DriverState,
    Limits,
    Pool,
    RunCancelled,
    RunJob,
    RunRequested,
    RunStarted,
)
from waybill_stage_runner.core.tick import Tick

PIPELINES = ("a", "b", "c")
CORES = st.sampled_from((None, None, 4))


class Placing(PoolWorld):
    """The world around `decide`: processes that do what they like, and people who ask."""

    @initialize(spares=st.integers(0, 2), starts=st.integers(1, 3))
    def begins(self, spares: int, starts: int) -> None:
        self.pool = Pool(limits=Limits(spares=spares, starts=starts), spares_from=0)
        self.on(Tick())

    @rule(
        uid=st.sampled_from(PIPELINES),
        urgent=st.booleans(),
        closing=st.sampled_from((0, 0, 1)),
        cores=CORES,
    )
    def run_wanted(self, uid: str, urgent: bool, closing: int, cores: int | None) -> None:
        self.wanted[uid] = RunRequested(
            pipeline_uid=uid, urgent=urgent, closing=bool(closing), cores=cores
        )
        self.on(self.wanted[uid])

    @precondition(lambda self: self.wanted)
    @rule(uid=st.sampled_from(PIPELINES), mode=st.sampled_from(StopMode))
    def run_unwanted(self, uid: str, mode: StopMode) -> None:
        self.on(RunCancelled(pipeline_uid=uid, mode=mode))

    @rule(uid=st.sampled_from(PIPELINES), cores=CORES)
    def check_wanted(self, uid: str, cores: int | None) -> None:
        self.checks_wanted += 1
        check_id = f"check {self.checks_wanted}"
        if not self.ended:
            self.checks[check_id] = uid
        self.cores[check_id] = cores
        self.on(CheckRequested(job=CheckJob(check_id=check_id, pipeline_uid=uid, cores=cores)))

    @precondition(lambda self: self.checks)
    @rule(data=st.data())
    def check_unwanted(self, data: st.DataObject) -> None:
        check_id = data.draw(st.sampled_from(sorted(self.checks)))
        del self.checks[check_id]
        self.on(CheckCancelled(check_id=check_id))

    @precondition(lambda self: self.starting())
    @rule(data=st.data())
    def driver_is_ready(self, data: st.DataObject) -> None:
        self.gets_ready(self.one_of(self.starting(), data))

    @precondition(lambda self: self.starting())
    @rule()
    def all_drivers_are_ready(self) -> None:
        for process in self.starting():
            self.gets_ready(process)

    @precondition(lambda self: self.checking())
    @rule(data=st.data())
    def check_begins(self, data: st.DataObject) -> None:
        process = self.one_of(self.checking(), data)
        assert process.checks is not None
        self.on(CheckStarted(driver_id=process.id, check_id=process.checks))

    @precondition(lambda self: self.checking())
    @rule(data=st.data(), keep=st.booleans())
    def check_is_done(self, data: st.DataObject, keep: bool) -> None:
        """It may be too late: then somebody has killed the driver, and the answer is not heard."""
        process = self.one_of(self.checking(), data)
        assert process.checks is not None
        check_id, process.checks = process.checks, None
        if not process.killed and not process.asked_to_end:
            uid = self.checks.pop(check_id)
            process.kept_for = uid if keep and self.cores[check_id] == process.cores else None
            process.kept_until = self.now + 90_000
        self.on(CheckDone(driver_id=process.id, check_id=check_id, keep=keep))

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def run_begins(self, data: st.DataObject) -> None:
        process = self.one_of(self.running(), data)
        process.begun = True
        self.on(RunStarted(driver_id=process.id))

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def run_is_done(self, data: st.DataObject) -> None:
        self.finishes(self.one_of(self.running(), data))

    @precondition(lambda self: self.processes)
    @rule(data=st.data(), exit_code=st.sampled_from([0, 1, 137]))
    def driver_is_gone(self, data: st.DataObject, exit_code: int) -> None:
        self.goes(self.one_of([*self.processes.values()], data).id, exit_code)

    @rule(milliseconds=st.sampled_from([1, 1_000, 10_000, 30_000, 90_000, 180_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.on(Tick())

    @rule(really=st.integers(0, 19))
    def all_ends(self, really: int) -> None:
        if really == 19:
            self.ends_all()

    @invariant()
    def starts_are_limited_but_not_delayed(self) -> None:
        starting = self.starts_now()
        assert starting <= self.pool.limits.starts
        if not self.ended:
            room = self.pool.limits.starts - sum(map(self.begins_now, self.processes.values()))
            assert starting >= min(room, len(self.pool.queue))

    @invariant()
    def every_run_that_is_wanted_waits_or_has_a_driver(self) -> None:
        """And none besides."""
        jobs = (driver.job for driver in self.pool.drivers.values())
        runs = [job for job in (*self.pool.queue, *jobs) if isinstance(job, RunJob)]
        assert sorted(run.pipeline_uid for run in runs if not run.replaced) == sorted(self.wanted)

    @invariant()
    def every_check_that_is_wanted_waits_or_has_a_driver(self) -> None:
        waits = [ask.check_id for ask in self.pool.queue if not isinstance(ask, RunJob)]
        have = [driver.check_id for driver in self.pool.drivers.values()]
        assert sorted([*waits, *filter(None, have)]) == sorted(self.checks)

    @invariant()
    def nobody_waits_where_a_driver_would_serve(self) -> None:
        drivers = [process for process in self.processes.values() if process.spark]
        for ask in self.pool.queue:
            if not isinstance(ask, RunJob) or self.could_run(ask.pipeline_uid):
                fit = [d for d in drivers if not isinstance(ask, RunJob) or d.cores == ask.cores]
                assert not any(d.serves(ask.pipeline_uid, self.now) for d in fit)

    @invariant()
    def everybody_knows_his_place(self) -> None:
        """Behind those for whom a driver starts."""
        line = enumerate(self.pool.queue, start=1 - self.starts_now())
        waits = {ask.pipeline_uid: at for at, ask in line if isinstance(ask, RunJob) and at > 0}
        assert {uid: place for uid, place in self.places.items() if place} == waits

    @invariant()
    def knows_which_processes_live(self) -> None:
        assert set(self.pool.drivers) == set(self.processes)

    def teardown(self) -> None:
        """Whatever has happened: when nobody asks, the spares are there; then all ends."""
        if self.broken:
            return  # what broke is what is to be seen
        if not self.ended:
            self.comes_to_rest()
            self.has_only_spares()
            self.ends_all()
        for uid in PIPELINES:
            self.run_wanted(uid, True, 0, None)
            self.run_unwanted(uid, StopMode.FORCE)
        for driver_id in sorted(self.processes):
            self.goes(driver_id, 137)
        self.time_passes(180_000)
        assert not self.processes
        assert not self.wanted

    def comes_to_rest(self) -> None:
        for uid in PIPELINES:
            self.run_unwanted(uid, StopMode.FORCE)
        for check_id in sorted(self.checks):
            self.checks.pop(check_id)
            self.on(CheckCancelled(check_id=check_id))
        for _ in range(4):
            self.time_passes(90_000)
            for process in list(self.processes.values()):
                if process.killed or process.asked_to_end:
                    self.goes(process.id, 137)
            while starting := self.starting():
                self.gets_ready(starting[0])

    def has_only_spares(self) -> None:
        states = [driver.state for driver in self.pool.drivers.values()]
        assert states == [DriverState.READY] * self.pool.limits.spares
        assert not self.wanted


TestPlacing = Placing.TestCase
TestPlacing.settings = settings(patiently, stateful_step_count=40)
