"""`Drivers`: one at a time of each pipeline, and none is waited for."""

from typing import Final, Protocol

from builders import make_record
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import PipelineRecord
from waybill_stage_runner.app.ports import Drivers, Lease

ONE: Final[PipelineRecord] = make_record("one", uid="uid-1")
OTHER: Final[PipelineRecord] = make_record("other", uid="uid-2")


class Bench(Protocol):
    @property
    def drivers(self) -> Drivers: ...

    def settled(self, *wanted: tuple[str, int]) -> bool:
        """Whether, at last, the drivers that live are those of these pipelines and claims."""


class DriversContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_driver_lives_from_its_start_until_it_is_killed(self, bench: Bench) -> None:
        start(bench, ONE, 1)
        assert bench.settled(("uid-1", 1))
        bench.drivers.stop("uid-1", StopMode.FORCE)
        assert bench.settled()

    def test_drivers_of_two_pipelines_live_side_by_side(self, bench: Bench) -> None:
        start(bench, ONE, 1)
        start(bench, OTHER, 2)
        assert bench.settled(("uid-1", 1), ("uid-2", 2))
        bench.drivers.stop("uid-1", StopMode.FORCE)
        assert bench.settled(("uid-2", 2))

    def test_next_driver_starts_only_when_the_one_before_is_gone(self, bench: Bench) -> None:
        start(bench, ONE, 1)
        start(bench, ONE, 2)
        assert bench.settled(("uid-1", 2))

    def test_where_no_driver_lives_there_is_nothing_to_stop(self, bench: Bench) -> None:
        bench.drivers.stop("uid-1", StopMode.CHECKPOINT)
        bench.drivers.stop("uid-1", StopMode.FORCE)
        assert bench.settled()

    def test_driver_that_only_closes_is_one_too(self, bench: Bench) -> None:
        bench.drivers.start(ONE, lease(1), urgent=True, closing=ONE.stages)
        assert bench.settled(("uid-1", 1))
        start(bench, ONE, 2)
        assert bench.settled(("uid-1", 2))


def start(bench: Bench, record: PipelineRecord, epoch: int) -> None:
    bench.drivers.start(record, lease(epoch), urgent=True)


def lease(epoch: int) -> Lease:
    return Lease(epoch=epoch, lifecycle_id="L1")
