"""What a sink must do so that a batch takes effect in it once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import ContractError, Problem, Retryable, UserError
from waybill_shared.contract.events import Fence, FieldMap


class SinkSuperseded(ContractError):
    """Error: another writer has moved the fence since it was read, or claimed it later.

    This driver must end.
    """


class SinkUnreachable(Retryable):
    """It does not answer, or cannot be written to; the `hint` says where to look. It is tried again
    after `retry_after_s`, or later."""

    def __init__(self, message: str, *, hint: str, retry_after_s: float = 0) -> None:
        super().__init__(message)
        self.hint = hint
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(SinkUnreachable, hint=self.hint, retry_after_s=self.retry_after_s)
        return made, self.args


class RowsRefused(UserError):
    """The sink answers, and takes none of these rows: they are at fault. Nothing was written."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__([Problem(message=message, hint=hint)])
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RowsRefused, hint=self.hint), self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLife:
    """One life of a sink's name, and the key of its fence. A name that returns is another sink.

    `key`: in the slot, if it is not made of the names of sink and stage.
    """

    name: str
    since: int
    fence_key: str
    moved: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The fence as it is now in the sink, and the sink's own name for this version of it."""

    fence: Fence
    version: FieldMap


class Sink(Protocol):
    """A sink. Rows and fence become visible together or not at all, whatever fails in between."""

    @property
    def name(self) -> str: ...

    @property
    def since(self) -> int:
        """The generation that added it: a name that is used again is another sink."""

    @property
    def key(self) -> str:
        """The same as in SinkLife."""

    @property
    def moved(self) -> int:
        """The generation in which its topic was created again; 0 if it never was.

        What drivers of earlier generations wrote was deleted with the old topic.
        """

    def claim(self) -> None:
        """Shut out every earlier writer of this sink, where it knows how; may be repeated."""

    def last(self) -> Written | None:
        """Return the newest fence, read after `claim`; None if nothing was ever written."""

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        """Write `rows`, if any, and move the fence in one atomic step.

        Rows of a big batch are DistributedRows. All may be read more than once.

        Raises SinkSuperseded if the fence has moved since `last` or the previous `write`, and
        RowsRefused if the rows can never go in. The returned fence holds what only the sink knows
        (the outputs of a Kafka sink).
        """

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        """Return what is wrong with these rows, by a write that is rolled back; None if they could
        be written. A sink that accepts every row of its schema returns None without a try.
        """

    def await_visible(self, fence: Fence) -> bool:
        """Return True if every reader can see what `fence` covers, now or a moment later.

        A commit is not always that moment: readers of Kafka also wait for earlier transactions.
        Raise StageStopped if what was written was deleted with its topic.
        """

    def close(self) -> None: ...


@runtime_checkable
class Versioned(Protocol):
    """A sink in which versions do not stay for ever."""

    @property
    def versions_from(self) -> int:
        """The least sequence of a batch with a version that can still be read."""


class MaintenanceResult(NamedTuple):
    """A report of a task on a table: what it did, by what is counted, or why it could not."""

    task: str
    done: Mapping[str, int]
    problem: str | None = None

    def of(self, stage: str, sink: str) -> TableMaintenance:
        """Return the report with the sink that it is about."""
        return TableMaintenance(
            stage=stage, sink=sink, task=self.task, done={**self.done}, problem=self.problem
        )


@runtime_checkable
class Maintained(Protocol):
    """A sink with a table that needs maintenance."""

    def maintain(self) -> MaintenanceResult | None:
        """Run the maintenance that is due, between two batches, and no longer than a batch takes.

        Never raises.
        """
