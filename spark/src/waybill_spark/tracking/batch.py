"""A batch as the checkpoint has planned it: what it reads, and what is known of it so far."""

from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.events import Range
from waybill_spark.tracking.fencing import drop_empty

NO_BATCH: Final = -1
"""The id of the batch of a fence before which the sink has no batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of one stage."""

    report: BatchReport
    """What is known of it so far."""
    runs: tuple[Range, ...]
    for_one_sink: bool = False
    """True if it is for one sink that lags, and so says nothing about the others."""
    has_no_records: bool = False
    """True if it contains no record. Then the rows that it would replace stay, too."""
    of_replays: bool = False
    """True if its ranges are replays, and so nothing of what the stage reads."""

    @property
    def ranges(self) -> tuple[Range, ...]:
        return drop_empty(self.runs)
