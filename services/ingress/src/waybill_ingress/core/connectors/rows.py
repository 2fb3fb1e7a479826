"""Reads the rows of a file in chunks: good rows as records, the others with place and reason."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from waybill_ingress.core.bodies.avro import read_avro
from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.bodies.forms import Reader
from waybill_ingress.core.feldera.updates import Updates, read_updates
from waybill_ingress.core.rows import Record, RowLimits, RowReader, RowRule
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.manifest.connectors import FileConnector, FileCsv

CHUNK_ROWS: Final = 1_000
CHUNK_BYTES: Final = 4_000_000
ENDLESS: Final = 2**62
PLACED: Final = ("line ", "not JSON at line ")  # reasons that name the place already


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRow:
    """A row that was refused. `raw`: its text, as far as it is known."""

    row: int
    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChunk:
    """One chunk. `rows` is the number of rows of the file that were read up to its end."""

    rows: int
    records: list[Record]
    dead: list[DeadRow]


class FileRows(RowReader):
    """A reader that returns rows in chunks, and skips the first `skip` rows, which were written
    before.
    """

    def __init__(
        self, rule: RowRule, record_bytes_max: int, *, skip: int, give: Callable[[FileChunk], None]
    ) -> None:
        limits = RowLimits(
            records_max=ENDLESS, record_bytes_max=record_bytes_max, bytes_max=ENDLESS
        )
        super().__init__(rule, limits, self._add)
        self._skip = skip
        self._give = give
        self._records: list[Record] = []
        self._dead: list[DeadRow] = []
        self._size = 0

    def next(self) -> int:
        """Count a row. A chunk ends only between two rows, because a row may be several records."""
        full = self._size >= CHUNK_BYTES
        if full or len(self._records) + len(self._dead) >= CHUNK_ROWS:
            self._flush()
        return super().next()

    def reject(self, reason: str, raw: bytes = b"") -> None:
        place = self.where() if self.where is not None else ""
        row = self.next()
        if row >= self._skip:
            said = reason if reason.startswith(PLACED) or not place else f"{place}: {reason}"
            raw = raw[: self.limits.record_bytes_max]
            self._dead.append(DeadRow(row=row, raw=raw, reason=said))
            self._size += len(raw)

    def end(self) -> None:
        """End the last chunk. An empty file is allowed."""
        self._flush()

    def _add(self, record: Record) -> None:
        if record.row >= self._skip:
            self._records.append(record)
            self._size += len(record.value) + len(record.key or b"")

    def _flush(self) -> None:
        if self._records or self._dead:
            chunk = FileChunk(rows=self.count, records=self._records, dead=self._dead)
            self._records, self._dead, self._size = [], [], 0
            self._give(chunk)


def reader_of(connector: FileConnector) -> Reader:
    match connector.format:
        case "csv":
            return partial(read_csv, options=_options(connector.csv or FileCsv()))
        case "avro":
            return read_avro
        case _:
            updates = Updates(array=None, form=connector.update_format, pandas=False)
            return partial(read_updates, updates=updates)


def _options(csv: FileCsv) -> CsvOptions:
    return CsvOptions(
        delimiter=csv.delimiter,
        quote=csv.quote,
        escape=csv.escape,
        header=csv.header == "present",
        null=csv.null_text,
    )


def read_rows(connector: FileConnector, pieces: Iterable[bytes], rows: FileRows) -> None:
    """Read the file to its end. If it is wrong there, the rows before that are given first."""
    try:
        reader_of(connector)(pieces, rows)
    except Refusal:
        rows.end()
        raise
    rows.end()
