"""Gives runs and checks to drivers, as `core.pool.decide` says. Fulfils `Drivers`.

`receive` returns what became of them. All of it happens on the main thread, because a driver dies
with the thread that has started it.
"""

import logging
import queue
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver import (
    CheckOrder,
    DriverEvent,
    EndOrder,
    MaintainOrder,
    PauseOrder,
    RunOrder,
    RunSpec,
    StartStagesOrder,
    StopOrder,
)
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_stage_runner.adapters.driver_config import (
    cores_of,
    driver_home,
    limits_of,
    pipeline_folder,
    request_run,
    run_spec,
)
from waybill_stage_runner.adapters.driver_log import newest_lines
from waybill_stage_runner.adapters.driver_reports import (
    PoolReport,
    QueueReport,
    RunReport,
    make_check_result,
    make_end_report,
)
from waybill_stage_runner.adapters.processes import (
    LOG,
    PROGRAM,
    DriverMessage,
    DriverProcesses,
    ProcessExited,
)
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.core.pool import model
from waybill_stage_runner.core.pool.decide import decide
from waybill_stage_runner.core.tick import Tick
from waybill_stage_runner.settings import Settings

logger = logging.getLogger(__name__)

DRIVERS: Final = "drivers"  # in the state folder, next to those of pipelines
SPEC: Final = "spec.json"
KILL_TIMEOUT_S: Final = 5.0
POLL_S: Final = 0.05
NOT_STARTED: Final = -1  # as an exit code
NO_LEASE: Final = Lease(epoch=0, lifecycle_id="")


class DriverPool:
    def __init__(self, settings: Settings, program: Sequence[str] = PROGRAM) -> None:
        self._settings = settings
        self._processes = DriverProcesses(pipeline_folder(settings, DRIVERS), program)
        spares_from = 0 if settings.spares_from_the_start else None
        self._pool = model.Pool(limits=limits_of(settings), spares_from=spares_from)
        self._specs: dict[str, RunSpec] = {}
        self._checks: dict[str, CheckOrder | MaintainOrder] = {}
        """Orders of checks and maintenance that are not done, by check id."""
        self._faults: dict[str, LifecycleError] = {}
        """What drivers reported as their own fault before they ended, by driver id."""
        self._reports: deque[PoolReport] = deque()

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool = True,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        uid, folder = record.pipeline_uid, pipeline_folder(self._settings, record.pipeline_uid)
        spec = run_spec(self._settings, record, lease, closing=closing)
        self._processes.end_left(uid)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / SPEC).write_text(spec.model_dump_json())
        except OSError as error:
            raise Retryable(f"folder {folder} cannot be written: {error}") from error
        self._specs[uid] = spec
        self._decide(request_run(self._settings, record, urgent=urgent, closes=bool(closing)))

    def stop(self, pipeline_uid: str, mode: StopMode) -> None:
        self._decide(model.RunCancelled(pipeline_uid=pipeline_uid, mode=mode))

    def dump_threads(self, pipeline_uid: str) -> None:
        for driver in self._pool.drivers.values():
            if driver.holds_run(pipeline_uid):
                self._processes.dump_threads(driver.id)

    def pause(self, pipeline_uid: str, *, paused: bool, order: int) -> None:
        """Pass the order to the run's driver. A run that has none yet starts as it says."""
        if (spec := self._specs.get(pipeline_uid)) is not None:
            pause = PauseOrder(run_id=spec.run_id, paused=paused, number=order)
            self._change(spec, {"paused": paused, "pause_order": order}, pause)

    def start_stages(self, pipeline_uid: str, stages: tuple[str, ...], *, order: int) -> None:
        """Pass the order to the run's driver. A run that has none yet starts with them."""
        if (spec := self._specs.get(pipeline_uid)) is not None:
            left = tuple(each for each in spec.stopped if each not in stages)
            start = StartStagesOrder(run_id=spec.run_id, stages=stages, number=order)
            self._change(spec, {"stopped": left}, start)

    def check(
        self,
        check_id: str,
        pipeline_uid: str,
        manifest: AppliedManifest,
        *,
        for_run: bool = True,
        before: AppliedManifest | None = None,
        compared_with: str | None = None,
        parallelism: int | None = None,
    ) -> None:
        self._checks[check_id] = CheckOrder(
            check_id=check_id,
            pipeline_uid=compared_with or pipeline_uid,
            manifest=manifest,
            before=before,
        )
        job = model.CheckJob(check_id=check_id, pipeline_uid=pipeline_uid, for_run=for_run)
        cores = cores_of(self._settings, parallelism)
        self._decide(model.CheckRequested(job=replace(job, cores=cores)))

    def maintain(self, check_id: str, record: PipelineRecord, sink: str, *, dry_run: bool) -> None:
        self._checks[check_id] = MaintainOrder(
            check_id=check_id,
            spec=run_spec(self._settings, record, NO_LEASE),
            sink=sink,
            dry_run=dry_run,
        )
        self._decide(model.CheckRequested(job=model.MaintenanceJob(check_id=check_id)))

    def newest_log(self, pipeline_uid: str, lines: int) -> Sequence[str]:
        return newest_lines(pipeline_folder(self._settings, pipeline_uid) / LOG, lines)

    def forget_check(self, check_id: str) -> None:
        self._checks.pop(check_id, None)
        self._decide(model.CheckCancelled(check_id=check_id))

    def receive(self, timeout_s: float = 0.0) -> Iterable[PoolReport]:
        """Return what became of runs and checks. Wait at most so long for the first report."""
        self._decide(Tick())
        self._listen(0.0 if self._reports else timeout_s)
        while True:
            while self._reports:
                yield self._reports.popleft()
            if not self._listen(0.0):
                return

    def all(self) -> Iterable[model.Driver]:
        return self._pool.drivers.values()

    def stop_all(self, timeout_s: float) -> None:
        """Let every driver end after its batch, and kill what is left when the time is over."""
        self._decide(model.EndAll())
        deadline = time.monotonic() + timeout_s
        while self._processes.living and time.monotonic() < deadline:
            self._listen(POLL_S)
        for driver_id in self._processes.living:
            self._processes.kill(driver_id)
        while self._processes.living and time.monotonic() < deadline + KILL_TIMEOUT_S:
            self._listen(POLL_S)  # what the kernel still keeps is ended by the next runner
        self.sweep()

    def sweep(self) -> None:
        self._processes.sweep()

    def _listen(self, timeout_s: float) -> bool:
        """Wait for one report of a driver. Return True if there was one."""
        try:
            received = self._processes.events.get(block=timeout_s > 0, timeout=timeout_s)
        except queue.Empty:
            return False
        if isinstance(received, ProcessExited):
            self._decide(
                model.DriverExited(driver_id=received.driver_id, exit_code=received.exit_code)
            )
            self._faults.pop(received.driver_id, None)
            self._processes.forget(received.driver_id)
        else:
            self._receive(received)
        return True

    def _receive(self, received: DriverMessage) -> None:
        driver_id, event = received.driver_id, received.event
        match event.kind:
            case "ready":
                self._decide(model.DriverReady(driver_id=driver_id))
            case "ended":
                self._decide(model.RunEnded(driver_id=driver_id))
            case "checking":
                self._decide(model.CheckStarted(driver_id=driver_id, check_id=event.check_id or ""))
            case "checked":
                self._finish_check(driver_id, event)
            case "failed" if event.run_id is None:
                if event.error is not None:
                    self._faults[driver_id] = event.error
            case "running" | "paused" | "blocked":
                self._decide(model.RunStarted(driver_id=driver_id))
                self._report_run(event)
            case _:
                self._report_run(event)

    def _report_run(self, event: DriverEvent) -> None:
        spec = next((s for s in self._specs.values() if s.run_id == event.run_id), None)
        if spec is not None:
            report = RunReport(pipeline_uid=spec.pipeline_uid, epoch=spec.epoch, event=event)
            self._reports.append(report)

    def _finish_check(self, driver_id: str, event: DriverEvent) -> None:
        """Report the result of a check, unless this driver's check is another one or none.

        A check that nobody wanted any more may have been asked for again, from another driver.
        """
        driver = self._pool.drivers.get(driver_id)
        check_id = None if driver is None else driver.check_id
        if check_id is None or check_id != event.check_id:
            return
        keep = not event.problems
        self._decide(model.CheckDone(driver_id=driver_id, check_id=check_id, keep=keep))
        del self._checks[check_id]
        self._reports.append(make_check_result(check_id, event))

    def _decide(self, event: model.PoolEvent) -> None:
        self._pool, actions = decide(self._pool, event, _now())
        for action in actions:
            self._carry_out(action)

    def _carry_out(self, action: model.PoolAction) -> None:
        match action:
            case model.StartProcess(driver_id=driver_id, spark=spark, cores=cores):
                self._start(driver_id, spark=spark, cores=cores)
            case model.AssignRun(driver_id=driver_id, pipeline_uid=uid):
                self._give(driver_id, self._specs[uid])
            case model.AssignCheck(driver_id=driver_id, check_id=check_id):
                self._processes.send(driver_id, self._checks[check_id])
            case model.StopRun(driver_id=driver_id, pipeline_uid=uid, mode=mode):
                order = StopOrder(run_id=self._specs[uid].run_id, mode=mode)
                self._processes.send(driver_id, order)
            case model.EndProcess(driver_id=driver_id):
                self._processes.send(driver_id, EndOrder())
            case model.KillProcess(driver_id=driver_id):
                self._processes.kill(driver_id)
            case _:
                self._report(action)

    def _report(
        self, action: model.ReportQueuePosition | model.ReportRunEnded | model.ReportCheckFailed
    ) -> None:
        match action:
            case model.ReportQueuePosition(pipeline_uid=uid, queue_position=at):
                epoch = self._specs[uid].epoch
                self._reports.append(QueueReport(pipeline_uid=uid, epoch=epoch, queue_position=at))
            case model.ReportRunEnded():
                self._report_end(action)
            case model.ReportCheckFailed(check_id=check_id, why=why):
                if self._checks.pop(check_id, None) is not None:
                    self._reports.append(Checked(check_id=check_id, failed=why))
            case _:
                assert_never(action)

    def _start(self, driver_id: str, *, spark: bool, cores: int | None) -> None:
        folder = self._processes.folder_of(driver_id)
        try:
            home = driver_home(self._settings, folder, spark=spark, cores=cores)
            self._processes.start(driver_id, home)
        except Retryable as error:
            logger.warning("driver not started", extra={"reason": str(error)})
            self._processes.events.put(ProcessExited(driver_id=driver_id, exit_code=NOT_STARTED))

    def _give(self, driver_id: str, spec: RunSpec) -> None:
        try:
            self._processes.note_run(driver_id, spec.pipeline_uid)
        except Retryable as error:
            logger.warning("driver is of no use", extra={"reason": str(error)})
            self._processes.kill(driver_id)
            return
        self._processes.send(driver_id, RunOrder(spec=spec))

    def _report_end(self, over: model.ReportRunEnded) -> None:
        uid = over.pipeline_uid
        spec = self._specs.pop(uid)
        if over.driver_id is not None:
            self._processes.forget_run(over.driver_id, uid)
            self._report_fault(over.driver_id, spec)
        self._reports.append(make_end_report(over, spec.epoch))

    def _change(
        self, spec: RunSpec, changed: Mapping[str, object], order: PauseOrder | StartStagesOrder
    ) -> None:
        """Change a run: by an order if it has a driver, else before it begins."""
        self._specs[spec.pipeline_uid] = spec.model_copy(update=changed)
        for driver in self._pool.drivers.values():
            if driver.holds_run(spec.pipeline_uid):
                self._processes.send(driver.id, order)

    def _report_fault(self, driver_id: str, spec: RunSpec) -> None:
        """Report the fault that the driver named before the run started or after it was over."""
        error = self._faults.get(driver_id)
        if error is None:
            return
        event = DriverEvent(kind="failed", run_id=spec.run_id, error=error)
        report = RunReport(pipeline_uid=spec.pipeline_uid, epoch=spec.epoch, event=event)
        self._reports.append(report)
        with spec.log_file.open("ab") as log:
            log.write(self._processes.log_of(driver_id))


def _now() -> int:
    return time.monotonic_ns() // 1_000_000
