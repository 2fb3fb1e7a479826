"""The world as a runner needs it."""

from random import Random
from typing import Final, Protocol

from sim.clocks import Clocks, TrueClock
from sim.driver import Driver
from sim.log import Cluster
from sim.runs import Runs
from sim.schedules import Schedules
from sim.stops import Stops
from waybill_shared.contract.events import (
    PipelineRecord,
    StageDefinition,
)

PATIENCE_MS: Final = 3_000  # as the loop's COMMAND_TIMEOUT_S, for scenarios that last a minute


class Around(Protocol):
    """The world as a runner needs it."""

    cluster: Cluster
    drivers: list[Driver]
    runs: Runs
    stops: Stops
    schedules: Schedules
    dice: Random
    patient: bool
    """Whether a command waits for as long as it takes."""

    @property
    def clock(self) -> TrueClock: ...

    @property
    def clocks(self) -> Clocks: ...

    def stuck(self) -> bool:
        """Whether what is published now stays with its producer for the moment."""

    def launch(
        self,
        record: PipelineRecord,
        epoch: int,
        host: object,
        *,
        closing: tuple[StageDefinition, ...],
    ) -> None: ...

    def pick(self, count: int) -> int: ...

    def topic_id(self) -> str: ...
