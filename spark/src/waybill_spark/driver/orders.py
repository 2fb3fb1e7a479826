"""Receives the orders of the runner in a separate thread: a run gets the order to stop while it
runs.
"""

import threading
from collections import deque
from collections.abc import Iterable

from pydantic import ValidationError

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver import (
    ORDERS,
    CheckOrder,
    EndOrder,
    MaintainOrder,
    PauseOrder,
    RunOrder,
    StartStagesOrder,
    StopOrder,
)
from waybill_shared.contract.errors import ContractError
from waybill_spark.driver.run_control import PauseState, RunControl, StageStarts


class OrderUnknown(ContractError):
    """The runner says what this driver does not understand: it must not guess."""


Next = RunOrder | CheckOrder | MaintainOrder | EndOrder


class Orders:
    """The orders of the runner to a driver.

    The main loop, which starts runs and checks, asks for the `next`. An order to stop,
    to pause or to start stages goes to the run that it names.
    """

    def __init__(self) -> None:
        self._waiting: deque[Next | ContractError] = deque()
        self._comes = threading.Condition()
        self._controls: dict[str, RunControl] = {}
        self._ends = threading.Event()

    def follow(self, lines: Iterable[bytes]) -> None:
        """Read orders until there are no more.

        Then the runner has ended, and the driver ends too.
        """
        threading.Thread(target=self._read, args=(lines,), name="orders", daemon=True).start()

    def next(self) -> Next:
        """Return the next order to carry out. Raise the error that was given to `fail`."""
        with self._comes:
            self._comes.wait_for(lambda: self._waiting)
            order = self._waiting.popleft()
        if isinstance(order, ContractError):
            raise order
        return order

    def has_order(self, within_s: float = 0.0) -> bool:
        """Return True if `next` would return at once, or within that time."""
        with self._comes:
            return bool(self._comes.wait_for(lambda: self._waiting, within_s))

    def control_of(self, run_id: str) -> RunControl:
        """Return the orders to this run."""
        control = self._controls.setdefault(run_id, RunControl())
        if self._ends.is_set():
            control.stop(StopMode.CHECKPOINT)
        return control

    def fail(self, error: ContractError) -> None:
        """Queue an error that makes this driver useless. It ends after the run that it may have."""
        self._put(error)

    def end(self) -> None:
        self._ends.set()
        for control in list(self._controls.values()):
            control.stop(StopMode.CHECKPOINT)
        self._put(EndOrder())

    def _read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                order = ORDERS.validate_json(line)
            except ValidationError as error:
                self.fail(OrderUnknown(f"the runner says what nobody knows: {error}"))
                break
            match order:
                case StopOrder(run_id=run_id, mode=mode):
                    self.control_of(run_id).stop(mode)
                case PauseOrder(run_id=run_id, paused=paused, number=number):
                    self.control_of(run_id).set_paused(PauseState(paused, number))
                case StartStagesOrder(run_id=run_id, stages=stages, number=number):
                    self.control_of(run_id).start_stages(StageStarts(stages, number))
                case EndOrder():
                    break
                case _:
                    self._put(order)
        self.end()

    def _put(self, order: Next | ContractError) -> None:
        with self._comes:
            self._waiting.append(order)
            self._comes.notify()
