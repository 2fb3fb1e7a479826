"""Bodies that are in memory, and what readers make of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from waybill_ingress.core.bodies.forms import Reader
from waybill_ingress.core.rows import Record, Rejection, RowLimits, RowReader, RowRule


@dataclass(frozen=True, slots=True)
class WholeBody:
    """Fulfils `Body`; it comes in pieces of `step` bytes."""

    data: bytes
    step: int = 1_000_000
    small: bool = True

    def pieces(self) -> Iterator[bytes]:
        for at in range(0, len(self.data), self.step):
            yield self.data[at : at + self.step]


@dataclass(slots=True)
class Rows:
    records: list[Record] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)


def rows_of(
    read: Reader, body: bytes, rule: RowRule, limits: RowLimits, *, step: int = 1_000_000
) -> Rows:
    found = Rows()
    reader = RowReader(rule, limits, found.records.append)
    read(WholeBody(body, step).pieces(), reader)
    reader.end()
    found.rejected = reader.rejected
    return found
