"""Why a stage cannot go on, in words that an outcome and a person can use."""

from collections.abc import Iterator
from contextlib import contextmanager

from waybill_shared.contract.errors import ContractError
from waybill_shared.contract.words import LossReason, StopReason


class StageStopped(ContractError):
    """The stage cannot go on.

    `retryable`: a new start finds its way by itself; otherwise an operator must decide.
    """

    def __init__(
        self, reason: LossReason | StopReason, detail: str, hint: str, *, retryable: bool = False
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.retryable = retryable
        self.detail = detail
        self.hint = hint


class StageClosed(ContractError):
    """Error: a batch arrived after `close`; Spark keeps it for the next start."""


@contextmanager
def collect(stops: list[StageStopped]) -> Iterator[None]:
    """Continue in spite of a stop, so that every sink is handled; it is raised in the end."""
    try:
        yield
    except StageStopped as stop:
        stops.append(stop)


def raise_first(stops: list[StageStopped]) -> None:
    if stops:
        raise stops[0]
