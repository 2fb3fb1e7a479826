"""The world as a driver needs it."""

from typing import TYPE_CHECKING, Protocol

from sim.clocks import Clocks
from sim.files import MemoryPath
from sim.sinks import Storage
from waybill_shared.contract.events import Fact
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    DriverStagesStarted,
    DriverStageStopped,
)

if TYPE_CHECKING:
    from sim.driver import Driver
    from sim.stops import Stops

DriverEvent = (
    DriverRuns
    | DriverPaused
    | DriverStageStopped
    | DriverStagesStarted
    | DriverFinished
    | DriverFailed
    | DriverEnded
)


class Around(Protocol):
    """The world as a driver needs it."""

    storage: Storage
    files: MemoryPath
    stops: "Stops"

    @property
    def clocks(self) -> Clocks: ...

    def interrupt(self, who: str, edge: str) -> None:
        """Let other things happen, or raise Crash or Retryable."""

    def send(self, fact: Fact) -> bool:
        """Without waiting: it may come late, twice or never. Return True if it is acknowledged."""

    def append(self, fact: Fact) -> None:
        """With an acknowledgement."""

    def bury(self, fact: Fact) -> None:
        """As `append`, with what it says of the dead."""

    def pick(self, count: int) -> int:
        """A number below `count`."""

    def check_pause(self, driver: "Driver") -> None:
        """Check that a batch may begin."""

    def hear(self, driver: "Driver", event: DriverEvent) -> None: ...
