"""Rows that lie with two executors, without Spark. One answers only at a second try."""

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from waybill_shared.contract.errors import ContractError
from waybill_spark.tracking.distributed_rows import DistributedRows, Share

T = TypeVar("T")


class Shares(DistributedRows):
    def __init__(self, rows: pa.Table, *, by: str | None = None) -> None:
        self._rows = rows
        self._by = by
        self._attempts = itertools.count()
        self.asked = 0

    @property
    def num_rows(self) -> int:
        return int(self._rows.num_rows)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows.to_batches()

    def answers(self, work: Callable[[Share], Iterable[T]]) -> list[T | ContractError]:
        self.asked += 1
        half = self.num_rows // 2
        keys = self._rows.column(self._by).to_pylist() if self._by else []
        while keys and 0 < half < len(keys) and keys[half - 1] == keys[half]:
            half += 1
        shares = [self._rows.slice(0, half), self._rows.slice(half)]
        self._answers(work, 1, shares[1])  # done, and its answer is lost
        told = [self._answers(work, task, rows) for task, rows in enumerate(shares)]
        return [*told[0], *told[1]]

    def _answers(
        self, work: Callable[[Share], Iterable[T]], task: int, rows: pa.Table
    ) -> list[T | ContractError]:
        sent: Callable[[Share], Iterable[T]] = pickle.loads(pickle.dumps(work))
        share = Share(task=task, attempt=next(self._attempts), rows=iter(rows.to_batches()))
        try:
            return [pickle.loads(pickle.dumps(each)) for each in sent(share)]
        except ContractError as error:
            return [pickle.loads(pickle.dumps(error))]

    def by_keys(self, keys: Sequence[str], number: str) -> "Shares":
        rows = self._rows.append_column(number, pa.arange(0, self._rows.num_rows))
        """As after a shuffle: they come in any order."""
        order = [*((key, "ascending") for key in keys), (number, "descending")]
        return type(self)(rows.sort_by(order), by=keys[0])

    def others(self, rows: pa.Table) -> "Shares":
        return type(self)(rows)

    def forget(self) -> None:
        """They are Python's to forget."""


class Fewer(Shares):
    """One was there when they were counted, and then no more."""

    @property
    def num_rows(self) -> int:
        return super().num_rows + 1
