"""The rows of an upsert by their keys, and which rows of a table they take the place of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    Reference,
)
from pyiceberg.expressions.literals import literal
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import TruncateTransform

from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings

AT: Final = "at"
THERE: Final = "there"
ORDER: Final = "order"
NO_NUMBER: Final = "no_number"
DAY_US: Final = 86_400_000_000
DAYS: Final = (-719_162, 2_932_896)  # 0001-01-01 to 9999-12-31
YEARS: Final = (
    (pa.types.is_date32, pa.int32(), DAYS),
    (pa.types.is_timestamp, pa.int64(), (DAYS[0] * DAY_US, (DAYS[1] + 1) * DAY_US - 1)),
)
NAMED_MAX: Final = 10_000  # keys that are looked for one by one in partitions; else by their range


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of an upsert by their numbers, and rows of a file."""

    losers: pa.Array
    """Rows of the upsert for which the file has a greater one."""
    replaced: pa.Array
    """Rows of the file that are replaced."""


class KeyedRows:
    """At most one row of each key."""

    def __init__(
        self, rows: pa.Table, settings: IcebergSinkSettings, metadata: TableMetadata
    ) -> None:
        schema = metadata.schema()
        self._settings = settings
        self._widths = _widths(metadata)
        named = schema.select(*settings.keys)
        self._types = [schema_to_pyarrow(named.find_field(key).field_type) for key in settings.keys]
        self.rows = _last_of_each(rows, settings)
        self._keys = self._keys_of(self.rows)

    def where(self) -> BooleanExpression:
        """Return a condition that is true of every row that has one of the keys, and of few
        others.
        """
        if not self.rows.num_rows:
            return AlwaysTrue()
        found: BooleanExpression = AlwaysTrue()
        for name, given in zip(self._settings.keys, self._keys.columns, strict=True):
            if pa.types.is_boolean(given.type):
                continue
            limits = pc.min_max(given).as_py()
            if _wraps(given.type, limits["min"], self._widths.get(name, 0)):
                continue
            least, greatest = literal(limits["min"]), literal(limits["max"])
            found = And(found, GreaterThanOrEqual(term=Reference(name), value=least))
            found = And(found, LessThanOrEqual(term=Reference(name), value=greatest))
            distinct = pc.unique(given)
            if len(distinct) <= NAMED_MAX:
                values = {literal(each) for each in distinct.to_pylist()}
                found = And(found, In(term=Reference(name), values=values))
        return found

    def are_in(self, keys: pa.Table) -> bool:
        """Return True if one of the keys is in a file. `keys` are the key columns of that file."""
        return bool(self._pairs(keys).num_rows)

    def matches(self, old: pa.Table) -> Matches:
        pairs = self._pairs(old)
        at, there = pairs.column(AT), pairs.column(THERE)
        by = self._settings.order_by
        if by is None:
            return Matches(losers=at.slice(0, 0), replaced=there)
        before = old.column(by).take(there)
        after = self.rows.column(by).take(at).cast(before.type)
        # one without a value is the smallest, and what is not a number the greatest
        takes = pc.or_kleene(pc.is_null(before), pc.less_equal(before, after))
        if pa.types.is_floating(after.type):
            takes = pc.or_kleene(takes, pc.is_nan(after))
        takes = pc.fill_null(takes, fill_value=False)
        return Matches(losers=at.filter(pc.invert(takes)), replaced=there.filter(takes))

    def to_write(self, losers: Iterable[int]) -> pa.Table:
        """Return the rows that are written: without `losers`, and without those that only
        delete.
        """
        rows = without(self.rows, pa.array(losers, pa.int64()))
        flag = self._settings.delete_where
        if flag is None:
            return rows
        deleted = pc.fill_null(rows.column(flag), fill_value=False)
        return rows.filter(pc.invert(deleted)).drop_columns([flag])

    def _pairs(self, old: pa.Table) -> pa.Table:
        """Return the numbers of rows that have the same key in the batch and in the file."""
        keys = self._keys_of(old)
        likely = pc.is_in(keys.column(0), value_set=self._keys.column(0).combine_chunks())
        there = keys.append_column(THERE, _numbers(keys)).filter(likely)  # of few rows it is quick
        new = self._keys.append_column(AT, _numbers(self._keys))
        return new.join(there, keys.column_names, join_type="inner").select([AT, THERE])

    def _keys_of(self, rows: pa.Table) -> pa.Table:
        """Return the key columns with the types of the table, under names of their own."""
        return pa.table(
            {
                f"key{number}": rows.column(name).cast(kind)
                for number, (name, kind) in enumerate(
                    zip(self._settings.keys, self._types, strict=True)
                )
            }
        )


def _widths(metadata: TableMetadata) -> Mapping[str, int]:
    """Return by column the greatest width to which a partition of the table has ever truncated
    it.
    """
    widths: dict[str, int] = {}
    for spec in metadata.specs().values():
        for field in spec.fields:
            name = metadata.schema().find_column_name(field.source_id)
            if name is not None and isinstance(field.transform, TruncateTransform):
                widths[name] = max(widths.get(name, 0), field.transform.width)
    return widths


def _wraps(kind: pa.DataType, least: Any, width: int) -> bool:  # noqa: ANN401 - of any type
    """Return True if truncating leaves the range of the type.

    Then files are written to the partition at the other end of it, as others do, and PyIceberg
    would not find them.
    """
    return bool(pa.types.is_integer(kind) and least - width < -(1 << (kind.bit_width - 1)))


def without(rows: pa.Table, numbers: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(_numbers(rows), value_set=numbers)))


def far_away(rows: pa.Table) -> str | None:
    """Return a column with a time that Python cannot represent, so that PyIceberg has no statistics
    of it.
    """
    for field in rows.schema:
        for is_kind, number, (least, greatest) in YEARS:
            if is_kind(field.type):
                found = pc.min_max(rows.column(field.name).cast(number)).as_py()
                if found["min"] is not None and not (
                    least <= found["min"] <= found["max"] <= greatest
                ):
                    return str(field.name)
    return None


def keyless(rows: pa.Table, keys: Sequence[str]) -> str | None:
    """Return the first key that has no value in one of the rows; None if all have one."""
    return next((key for key in keys if rows.column(key).null_count), None)


def _last_of_each(rows: pa.Table, settings: IcebergSinkSettings) -> pa.Table:
    """Return of each key the greatest row by `orderBy`, or the last one of the batch."""
    names = [f"key{number}" for number in range(len(settings.keys))]
    columns: dict[str, Any] = dict(
        zip(names, rows.select(list(settings.keys)).columns, strict=True)
    )
    columns[AT] = _numbers(rows)
    order = [(AT, "ascending", "at_end")]
    if settings.order_by is not None:
        by = columns[ORDER] = rows.column(settings.order_by)
        order = [(ORDER, "ascending", "at_start"), *order]
        if pa.types.is_floating(by.type):
            columns[NO_NUMBER] = pc.fill_null(pc.is_nan(by), fill_value=False)
            order = [(NO_NUMBER, "ascending", "at_start"), *order]
    table = pa.table(columns)
    inorder = table.take(pc.sort_indices(table, sort_keys=order))
    last = inorder.group_by(names, use_threads=False).aggregate([(AT, "last")]).column(f"{AT}_last")
    return rows.take(last.take(pc.sort_indices(last)))


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.arange(0, rows.num_rows)
