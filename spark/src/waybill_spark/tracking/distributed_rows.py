"""The rows of a batch that is too large for one process: they lie with the executors.

A sink either reads them, one part after the other, or sends work to where they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa

from waybill_shared.contract.errors import ContractError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of the rows that one task has. They are read once, in their order."""

    task: int
    """Shares of greater numbers have later rows."""
    attempt: int
    """Unique: a task that failed, or with an answer that was lost, is run again under another
    number.
    """
    rows: Iterable[pa.RecordBatch]


class DistributedRows(ABC):
    """Rows on executors. To iterate brings them here, a part at a time. All may be done again: it
    is the same rows."""

    @property
    @abstractmethod
    def num_rows(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    @abstractmethod
    def answers(self, work: Callable[[Share], Iterable[T]]) -> list[T | ContractError]:
        """Return what `work` returns for each share, where the rows are.

        It goes there as a pickle.
        """

    def carry_out(
        self, work: Callable[[Share], Iterable[T]], undo: Callable[[list[T]], None]
    ) -> list[T]:
        """Return the results of `answers`.

        An attempt may do its work and still be run again: only returned results count. If one is an
        error, pass the other results to `undo` and raise it.
        """
        done: list[T] = []
        errors: list[ContractError] = []
        for each in self.answers(work):
            if isinstance(each, ContractError):
                errors.append(each)
            else:
                done.append(each)
        if errors:
            undo(done)
            raise errors[0]
        return done

    @abstractmethod
    def by_keys(self, keys: Sequence[str], number: str) -> "DistributedRows":
        """Return the rows with those of one key in one share.

        The column `number` has the place of each in the batch.
        """

    @abstractmethod
    def others(self, rows: pa.Table) -> "DistributedRows":
        """Return other rows with columns of bytes, with the same executors."""

    @abstractmethod
    def forget(self) -> None:
        """Delete the rows: nobody needs them any more. May be repeated."""

    def to_batches(self) -> "DistributedRows":
        return self


Rows: TypeAlias = pa.Table | DistributedRows
