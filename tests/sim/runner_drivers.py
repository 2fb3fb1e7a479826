"""The driver processes of one simulated runner."""

from typing import TYPE_CHECKING

from sim.runner_world import Around
from waybill_shared.contract.commands import STOP_MODES, StopMode
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_stage_runner.app.ports import Lease

if TYPE_CHECKING:
    from sim.runner import RunnerProcess


class LocalDrivers:
    """Fulfils `Drivers` for the runner of one process, the host."""

    def __init__(self, world: Around, host: "RunnerProcess") -> None:
        self.checks: list[str] = []
        self._world = world
        self._host = host

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        self._world.launch(record, lease.epoch, self._host, closing=closing)

    def stop(self, pipeline_uid: str, mode: StopMode) -> None:
        for driver in self._world.drivers:
            if driver.host is self._host and driver.record.pipeline_uid == pipeline_uid:
                driver.stopping = True
                if not STOP_MODES[mode].asks_driver:
                    driver.kill()

    def dump_threads(self, pipeline_uid: str) -> None: ...

    def pause(self, pipeline_uid: str, *, paused: bool, order: int) -> None:
        for driver in self._world.drivers:
            if driver.host is self._host and driver.record.pipeline_uid == pipeline_uid:
                driver.pause(paused, order)

    def start_stages(self, pipeline_uid: str, stages: tuple[str, ...], *, order: int) -> None:
        for driver in self._world.drivers:
            if driver.host is self._host and driver.record.pipeline_uid == pipeline_uid:
                driver.start_stages(stages, order)

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
        self.checks.append(check_id)

    def maintain(self, check_id: str, record: PipelineRecord, sink: str, *, dry_run: bool) -> None:
        raise AssertionError("nobody asks for it here")

    def newest_log(self, pipeline_uid: str, lines: int) -> list[str]:
        raise AssertionError("nobody asks for it here")

    def forget_check(self, check_id: str) -> None:
        self.checks.remove(check_id)
