"""A driver process: the stages of one pipeline, and what it tells its runner.

What the driver's own `app` decides (the order of a start, what a failure means) is the real code.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, cast

from sim.driver_world import Around
from sim.files import MemoryPath
from sim.loads import SimLoads
from sim.sinks import Storage
from sim.spark import QueryFailed
from sim.stages import SimStage, open_journal, open_sink
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import Commit, Fact, PipelineRecord, StageDefinition
from waybill_shared.process.clock import Clock
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.closing import _report as report_last
from waybill_spark.driver.closing import find_staying, refuse_before_start
from waybill_spark.driver.definitions import later_sinks, stage_inputs
from waybill_spark.driver.ending import Ending
from waybill_spark.driver.failures import StageFailed, describe
from waybill_spark.driver.stages import (
    open_stages,
    put_dead_letters,
    report_losses,
    start_stages,
)
from waybill_spark.tracking.checkpoint import CheckpointDamaged
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverRuns,
)
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits, parallelism_of

LIMITS: Final = CoreLimits(usual=2, most=4)
FAILURES = (
    StageFailed, StageStopped, SinkSuperseded, CheckpointDamaged, QueryFailed, Retryable,
    UserError,
)  # fmt: skip


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
        self._orders: list[tuple[bool, int]] = []
        """To pause or to continue, which it has not read yet."""
        self._stages: tuple[SimStage, ...] = ()
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

    @property
    def has_orders(self) -> bool:
        return bool(self._orders)

    def work(self) -> None:
        """A batch in every stage."""
        for stage in self._stages:
            if not self.dead and not self._paused:
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
            for stage in self._stages:
                stage.stop()
            self._end()
        elif self.closing:
            if not self.busy:  # else it is paused in the middle of it
                self._close()
        elif not self._stages:
            self._begin()
        elif self._orders and self.world.pick(2):
            self._pause = self._orders.pop(0)
        elif self._pause != self._reported:
            self._report_pause()
        elif not self._beginning and not self._has_finished():
            self._step(self._stages[self.world.pick(len(self._stages))])

    def _begin(self) -> None:
        self._stages = tuple(SimStage(definition, self) for definition in self.record.stages)
        self._beginning = True
        self.edge("driver.begins")
        stages = cast(list[RunningStage], self._stages)
        open_stages(stages)
        self._not_put = put_dead_letters(stages, self.record.dead_letters)
        if self.ends:
            self._ending = Ending(stages, self)
        else:
            start_stages(stages)
        self._beginning = False
        self._report_pause()

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
        for stage in self._stages:
            stage.stop()
        self._end()
        return True

    @property
    def _paused(self) -> bool:
        return self._pause[0]

    def _report_pause(self) -> None:
        """When no batch runs, or when they begin again; a driver that begins has no batch yet."""
        if not self.busy:
            if self._paused:
                with _holding(self._stages):
                    for stage in self._stages:
                        stage.move_claims()
            paused, order = self._reported = self._pause
            found = self._not_put
            runs = DriverRuns(not_put=found)
            self.world.hear(self, DriverPaused(order=order, not_put=found) if paused else runs)

    def _close(self) -> None:
        """As `report_last` does: the last word on what goes, with a change or its pipeline."""
        self._beginning = True
        for definition in self.closing:
            stays = find_staying(definition, self.record.stages)
            refuse_before_start(self._ledgers(definition), self._ledgers(stays))
        for definition in self.closing:
            if not find_staying(definition, self.record.stages).sinks:
                open_journal(definition, self).claim()
            for ledger in self._ledgers(definition):
                ledger.sink.claim()
                ledger.read()
                report_last(ledger)
        self._end()

    def _ledgers(self, definition: StageDefinition) -> list[Ledger]:
        later = later_sinks(definition)
        return [
            Ledger(
                open_sink(definition, sink.name, self),
                stage=definition.name,
                inputs=stage_inputs(definition),
                later=later.get(sink.name),
                identity=self.identity,
                emit=self._emit_surely,
                clock=self.clock,
            )
            for sink in definition.sinks
        ]

    def _step(self, stage: SimStage) -> None:
        if stage.busy:
            return
        try:
            with _holding([stage]):
                if not self._paused:
                    self.world.check_pause(self)
                    stage.step()
                if stage.has_hidden_rows() or self.world.pick(4) == 0:
                    stage.watch()
        except StageStopped:
            free = [each for each in self._stages if not each.busy]
            with _holding(free):
                report_losses(cast(list[RunningStage], free))
            raise

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
        if self.world.send(self._fact(commit)):
            self._unanswered.discard((commit.stage, commit.sink))

    def _emit_surely(self, commit: Commit) -> None:
        self.edge(f"{commit.stage}.closing")
        self.world.append(self._fact(commit))

    def _fact(self, commit: Commit) -> Fact:
        return Fact(
            tenant=self.record.tenant,
            pipeline_uid=self.record.pipeline_uid,
            generation=self.record.generation,
            at=self.clock.now_ms(),
            body=commit,
        )


@contextmanager
def _holding(stages: Sequence[SimStage]) -> Iterator[None]:
    """A stage that is in a call is in no other: the real one has a lock for it."""
    for stage in stages:
        stage.busy = True
    try:
        yield
    finally:
        for stage in stages:
            stage.busy = False
