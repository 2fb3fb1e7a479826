"""The rows of a batch, as they were read for its sinks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from waybill_spark.tracking.dead_letters.records import RejectedRecord
from waybill_spark.tracking.distributed_rows import DistributedRows, Rows


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch for each sink, by the sink's name.

    The rows of a big batch stay with the executors until `close`.

    `dead`: the records that gave no rows and must go to a dead-letter topic, in their order.
    `dropped`: by rule, how many records the manifest says to drop.
    """

    by_sink: Mapping[str, Rows]
    dead: Sequence[RejectedRecord] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def any_row(self) -> bool:
        return any(rows.num_rows for rows in self.by_sink.values())

    def close(self) -> None:
        for rows in self.by_sink.values():
            if isinstance(rows, DistributedRows):
                rows.forget()
