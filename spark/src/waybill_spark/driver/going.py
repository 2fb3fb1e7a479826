"""The stages of a run: those that go on, and those that a failure of their own has stopped.

What fails goes through `fail`, which asks `is_of_stage`. A failure of the whole pipeline ends the
run, as StageFailed. A stage that fails by itself ends its query, and is reported; the others go on.
Its sinks stay open until the run ends, or an order starts the stage again: then it is new,
claims its sinks, and continues where they are. If no stage is left, the run ends.

Everything is called from the loop of the run, and nothing here is safe in another thread.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Final

from waybill_shared.contract.errors import ContractError, UserError
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed, cause_of, is_of_stage
from waybill_spark.tracking.sink import SinkSuperseded

logger = logging.getLogger(__name__)

Make = Callable[[str], RunningStage]
"""Makes a stage, by its name, and opens nothing of it. Raises UserError."""


class RunStages:
    """The stages of a run. `report` is called with each that stops: its name, the cause, and how
    many records it has put aside. `left_out`: the names of those that are stopped already.
    """

    def __init__(
        self,
        make: Make,
        report: Callable[[str, BaseException, int], None],
        *,
        left_out: Iterable[str] = (),
    ) -> None:
        self.going: Final[list[RunningStage]] = []
        """Those that are not stopped. Whoever has this list sees at once what changes."""
        self.all: Final[list[RunningStage]] = []
        """Those that this run has had, also twice by one name."""
        self._make = make
        self._report = report
        self._stopped: dict[str, RunningStage | None] = dict.fromkeys(left_out)

    @property
    def is_whole(self) -> bool:
        """True if no stage is stopped."""
        return not self._stopped

    @property
    def stopped(self) -> frozenset[str]:
        """The names of those that are stopped."""
        return frozenset(self._stopped)

    def add(self, names: Iterable[str]) -> None:
        """Make the stages that are to go on. Nothing of them is opened."""
        cause: UserError | None = None
        for name in names:
            try:
                stage = self._make(name)
            except UserError as error:  # such as a connection that is not in the file any more
                cause, self._stopped[name] = error, None
                self._keep_stopped(name, error)
            else:
                self.all.append(stage)
                self.going.append(stage)
        if cause is not None and not self.going:
            raise cause

    def attempt(self, stage: RunningStage, act: Callable[[], None]) -> bool:
        """Do something with a stage that goes on. Return False if the stage has failed by itself,
        and so is stopped.

        Raise StageFailed if the run must end.
        """
        try:
            act()
        except Exception as error:  # the boundary of a stage: whatever it was, it is judged
            self.fail(stage, error)
            return False
        return True

    def fail(self, stage: RunningStage, failure: Exception) -> None:
        """Stop a stage that has failed by itself. Raise StageFailed if the run must end."""
        cause = cause_of(failure)
        if not is_of_stage(cause):
            raise StageFailed(stage.name) from cause
        logger.error("stage is stopped", extra={"stage": stage.name, "reason": str(cause)})
        self.going.remove(stage)
        self._stopped[stage.name] = stage
        stage.end_query()
        stage.keep_out_earlier()
        self._report(stage.name, cause, stage.put_aside)
        if not self.going:
            raise StageFailed(stage.name) from cause

    def start(self, name: str, *, paused: bool) -> None:
        """Start a stopped stage. If it fails, whatever it was, it stays stopped and is reported.

        Raise StageFailed if the run must end, because it is of an earlier claim.
        """
        if name not in self._stopped:
            return
        before, self._stopped[name] = self._stopped[name], None
        try:
            if before is not None:
                before.stop()
            stage = self._make(name)
            self.all.append(stage)
            self._stopped[name] = stage
            _open(stage, paused=paused)
        except SinkSuperseded as error:
            raise StageFailed(name) from error
        except Exception as error:  # the boundary of a stage: the others go on
            self._keep_stopped(name, cause_of(error))
            return
        del self._stopped[name]
        self.going.append(stage)
        logger.info("stage is started", extra={"stage": name})

    def _keep_stopped(self, name: str, cause: BaseException) -> None:
        reason = {"stage": name, "reason": str(cause)}
        logger.error("stage is not started", exc_info=cause, extra=reason)
        stage = self._stopped[name]
        if stage is not None:
            stage.end_query()
        self._report(name, cause, 0 if stage is None else stage.put_aside)

    def report_hidden(self) -> None:
        """Report rows of stopped stages that readers see only now."""
        for stage in self._stopped.values():
            if stage is not None and stage.has_hidden_rows():
                try:
                    stage.watch()
                except ContractError as error:
                    reason = {"stage": stage.name, "reason": str(error)}
                    logger.warning("rows are not reported yet", extra=reason)

    def close(self) -> None:
        """Stop all of them at a batch boundary, the last one first."""
        with ExitStack() as stack:
            for stage in self.all:
                stack.callback(stage.stop)


def _open(stage: RunningStage, *, paused: bool) -> None:
    """Do for one stage what the start of a run does for all."""
    stage.set_paused(paused=paused)
    stage.open()
    stage.report_losses()
    if paused:
        stage.move_claims()
    stage.start_replays()
    stage.start()
