"""A driver process: the stages of one pipeline, and what it tells its runner.

What the driver's own `app` decides (the order of a start, what a failure means) is the real code.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, cast

from sim.closing import fact_of, report_closing
from sim.driver_world import Around
from sim.failing import FAILURES, failing, holding
from sim.files import MemoryPath
from sim.loads import SimLoads
from sim.sinks import Storage
from sim.stages import SimStage
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Commit, Fact, PipelineRecord, StageDefinition
from waybill_shared.process.clock import Clock
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.ending import Ending
from waybill_spark.driver.failures import StageFailed, describe, is_of_stage
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.stages import (
    open_stages,
    put_dead_letters,
    report_losses,
    start_stages,
)
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.stopping import StageStopped
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    DriverStagesStarted,
    DriverStageStopped,
)
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits, parallelism_of

LIMITS: Final = CoreLimits(usual=2, most=4)


class Crash(BaseException):
    """The process ends here, as by a SIGKILL; no code of it runs any more."""


class Driver:
    """Runs until it is stopped, fails or crashes; the runner hears of it by events."""

    def __init__(
        self,
        record: PipelineRecord,
        epoch: int,
        world: Around,
        host: object,
        *,
        closing: tuple[StageDefinition, ...],
    ) -> None:
        self.closing = closing
        self.host = host
        self.record = record
        self.epoch = epoch
        self.world = world
        self.identity = Identity(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            generation=record.generation,
            epoch=epoch,
        )
        self.cores = LIMITS.allow(parallelism_of(record))
        self.dead = False
        self.forgotten = False
        """Paused where nobody sees it; others took its place, and it may yet come back."""
        self.stopping = False
        self._pause = (record.desired == "paused", 0)
        """Whether no batch begins, and the number of the order that said so."""
        self._reported: tuple[bool, int] | None = None
        self._not_put: dict[str, Problem] = {}
        self.ordered: set[str] = set()
        """The stages that it was ordered to start."""
        self._orders: list[tuple[bool, int]] = []
        """To pause or to continue, which it has not read yet."""
        self._run: RunStages | None = None
        self._starts: list[tuple[tuple[str, ...], int]] = []  # of stages that are stopped
        self._beginning = False
        self._last: dict[tuple[str, str], Commit] = {}
        self._unanswered: set[tuple[str, str]] = set()
        """Sinks of which Kafka has not acknowledged the last commit."""
        self.ends = record.manifest.model.ends
        self._ending: Ending | None = None
        self.loads = SimLoads(world.pick)

    @property
    def storage(self) -> Storage:
        return self.world.storage

    @property
    def files(self) -> MemoryPath:
        return self.world.files

    @property
    def clock(self) -> Clock:
        return self.world.clocks.driver

    def __str__(self) -> str:
        return f"driver {self.record.pipeline_uid[:4]}/{self.epoch}"

    @property
    def busy(self) -> bool:
        return self._beginning or any(stage.busy for stage in self._stages)

    def turn(self) -> None:
        """One step of its life."""
        if not self.dead:
            self._guarded(self._turn)

    def pause(self, paused: bool, order: int) -> None:
        self._orders.append((paused, order))

    def start_stages(self, stages: tuple[str, ...], order: int) -> None:
        self._starts.append((stages, order))

    @property
    def has_orders(self) -> bool:
        return bool(self._orders or self._starts)

    @property
    def _stages(self) -> tuple[SimStage, ...]:
        """Those that go on."""
        going = () if self._run is None else self._run.going
        return tuple(cast(list[SimStage], going))

    def work(self) -> None:
        """A batch in every stage, and the letters that are to be replayed."""
        for stage in self._stages:
            if not self.dead and self._may_replay(stage):
                self._guarded(partial(self._replay, stage))
            if not (self.dead or self._paused) and stage in self._stages:
                self._guarded(partial(self._step, stage))

    def repeat(self) -> None:
        """What the emitter does while nothing happens."""
        for commit in self._last.values():
            self._send(commit)

    def kill(self) -> None:
        if not self.dead:
            self.dead = True
            self.world.hear(self, DriverEnded(exit_code=-9))

    def edge(self, name: str) -> None:
        self.loads.interleave()
        self.world.interrupt(str(self), name)
        if self.dead:
            raise Crash

    def emit(self, commit: Commit) -> None:
        self.edge(f"{commit.stage}.{commit.sink}.after_commit")
        self._last[commit.stage, commit.sink] = commit
        self._unanswered.add((commit.stage, commit.sink))
        self._send(commit)
        self.edge(f"{commit.stage}.{commit.sink}.after_event")

    def has_all(self) -> bool:
        """Whether Kafka has the newest commit of every sink."""
        return not self._unanswered

    def bury(self, fact: Fact) -> None:
        self.world.bury(fact)

    def _turn(self) -> None:
        if self.stopping and not self.busy:
            self._close_stages()
            self._end()
        elif self.closing:
            if not self.busy:  # else it is paused in the middle of it
                self._close()
        elif self._run is None:
            self._begin()
        elif self._starts and self.world.pick(2):
            self._start(*self._starts.pop(0))
        elif self._orders and self.world.pick(2):
            self._pause = self._orders.pop(0)
        elif self._pause != self._reported:
            self._report_pause()
        elif replaying := [each for each in self._stages if self._may_replay(each)]:
            self._replay(replaying[self.world.pick(len(replaying))])
        elif not self._beginning and not self._has_finished():
            self._step(self._stages[self.world.pick(len(self._stages))])

    def _begin(self) -> None:
        left_out = {each.stage for each in self.record.stopped_stages}
        run = self._run = RunStages(self._make, self._report_stop, left_out=left_out)
        run.add(each.name for each in self.record.stages if each.name not in left_out)
        self._beginning = True
        self.edge("driver.begins")
        open_stages(run)
        stopped = [each for each in self.record.stages if each.name in run.stopped]
        self._not_put = put_dead_letters(run.going, self.record.dead_letters, stopped)
        for stage in self._stages:
            stage.start_replays()
        if self.ends:
            self._ending = Ending(run, self)
        else:
            start_stages(run)
        self._beginning = False
        self._report_pause()

    def _may_replay(self, stage: SimStage) -> bool:
        """Whether it may replay letters now, and there are some that the stage has not read yet."""
        waits = self._beginning or self._paused or self.stopping or stage.busy
        return not waits and stage.has_replays()

    def _replay(self, stage: SimStage) -> None:
        """As the thread for it does; no batch of the stage runs meanwhile."""
        with failing(stage, self._fail_stage):
            self.world.check_pause(self)
            stage.replay()

    def _make(self, name: str) -> RunningStage:
        definition = next(each for each in self.record.stages if each.name == name)
        self.world.stops.begins(self, definition)
        return cast(RunningStage, SimStage(definition, self))

    def _report_stop(self, name: str, cause: BaseException, put_aside: int) -> None:
        error = replace(describe(cause, name), stage=name)
        self.world.hear(self, DriverStageStopped(error=error, put_aside=put_aside))

    def _start(self, stages: tuple[str, ...], order: int) -> None:
        """As `StageStarting` does it."""
        assert self._run is not None
        self._beginning = True
        self.ordered |= set(stages)
        for name in stages:
            self._run.start(name, paused=self._paused)
        self._beginning = False
        self.world.hear(self, DriverStagesStarted(order=order))

    def _close_stages(self) -> None:
        if self._run is not None:
            self._run.close()

    def _has_finished(self) -> bool:
        """As the loop of `Ending` does it: whether the run has ended by itself now."""
        if self._ending is None or self._paused or self.busy:
            return False
        self._beginning = True
        self._ending.advance()
        self._beginning = False
        if not self._ending.has_finished():
            return False
        self.world.hear(self, DriverFinished())
        self._close_stages()
        self._end()
        return True

    @property
    def _paused(self) -> bool:
        return self._pause[0]

    def _report_pause(self) -> None:
        """When no batch runs, or when they begin again; a driver that begins has no batch yet."""
        if not self.busy:
            if self._paused:
                with holding(self._stages):
                    for stage in self._stages:
                        stage.move_claims()
            paused, order = self._reported = self._pause
            found = self._not_put
            runs = DriverRuns(not_put=found)
            self.world.hear(self, DriverPaused(order=order, not_put=found) if paused else runs)

    def _close(self) -> None:
        self._beginning = True
        report_closing(self)
        self._end()

    def _step(self, stage: SimStage) -> None:
        if stage.busy:
            return
        with failing(stage, self._fail_stage):
            if not self._paused:
                self.world.check_pause(self)
                stage.step()
            if stage.has_hidden_rows() or self.world.pick(4) == 0:
                stage.watch()

    def _fail_stage(self, stage: SimStage, failure: Exception) -> None:
        """As `Watcher` does it."""
        assert self._run is not None
        if isinstance(failure, StageStopped) and not is_of_stage(failure):
            free = [each for each in self._stages if not each.busy]
            with holding(free):
                report_losses(cast(list[RunningStage], free))
        self._beginning = True
        self._run.fail(cast(RunningStage, stage), failure)
        self._beginning = False

    def _guarded(self, turn: Callable[[], None]) -> None:
        try:
            turn()
        except Crash:
            self.kill()
        except FAILURES as error:
            self._fail(error)

    def _end(self) -> None:
        self.dead = True
        self.world.hear(self, DriverEnded(exit_code=0))

    def _fail(self, error: Exception) -> None:
        if self.dead:
            return
        self.dead = True
        cause = error.__cause__ if isinstance(error, StageFailed) and error.__cause__ else error
        stage = error.stage if isinstance(error, StageFailed) else None
        self.world.hear(self, DriverFailed(problems=(), error=describe(cause, stage)))
        self.world.hear(self, DriverEnded(exit_code=1))

    def _send(self, commit: Commit) -> None:
        if self.world.send(fact_of(self, commit)):
            self._unanswered.discard((commit.stage, commit.sink))

    def emit_surely(self, commit: Commit) -> None:
        self.edge(f"{commit.stage}.closing")
        self.world.append(fact_of(self, commit))
