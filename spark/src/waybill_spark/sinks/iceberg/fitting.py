"""Decides if a table accepts the rows of a query, and what of it must change so that it does."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortDirection
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import IcebergType, LongType, NestedField

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings, PartitionField
from waybill_spark.sinks.altering import new_names
from waybill_spark.sinks.iceberg import tables
from waybill_spark.sinks.iceberg.column_types import accepts, is_float, is_wider
from waybill_spark.sinks.iceberg.tables import Alteration, IcebergTarget

Types = Mapping[str, IcebergType]
CREATED: str = "format-version"  # a property that only counts when a table is made


def plan_change(target: IcebergTarget, table: Table | None, schema: pa.Schema) -> Alteration:
    """Return what must change so that the table accepts rows of this schema, as the manifest
    allows. Raise UserError with a hint if they can never be written.
    """
    untyped = [*_find_untyped(target, schema)]
    if untyped:
        raise UserError(untyped)
    problems = [*_wrong_columns(target.settings, tables.iceberg_schema(schema), target)]
    if table is None and not target.settings.create:
        hint = "write create: true, or make it with an Iceberg client"
        problems.append(tables.problem(target, "there is no such table", hint))
    if table is None and target.settings.by_partition and not target.settings.partition_by:
        problems.append(_no_partitions(target))
    if problems:
        raise UserError(problems)
    if table is None:
        return tables.NOTHING
    columns = _Columns(target, table, tables.iceberg_schema(target.without_flag(schema)))
    columns.judge()
    partitions = _new_partitions(target, table)
    problems = [
        *columns.problems,
        *_other_partitions(target, table, partitions),
        *_unfit_for_mode(target, table),
    ]
    if problems:
        raise UserError(problems)
    mine = _is_mine(target, table)
    return Alteration(
        added=columns.added,
        renamed=columns.find_renames(),
        widened=columns.widened,
        partitions=partitions if mine else None,
        new_order=mine and not _is_sorted_so(target.settings, table),
        properties={
            name: value
            for name, value in target.properties_to_set(mine=mine).items()
            if table.properties.get(name) != value and name != CREATED
        },
    )


@dataclass
class _Columns:
    """The columns of a table, compared with those of a query."""

    target: IcebergTarget
    table: Table
    given: Schema
    added: dict[str, IcebergType] = field(default_factory=dict)
    widened: dict[str, tuple[IcebergType, IcebergType]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def judge(self) -> None:
        present = {column.name: column for column in self.table.schema().fields}
        given = {column.name: column for column in self.given.fields}
        self._add({name: each for name, each in given.items() if name not in present}, present)
        for name, column in present.items():
            if name in given:
                self._compare(column, given[name])
            elif column.required:
                said = f"its column {name} requires a value, and the query gives none"
                self._refuse(said, f"add it to the query, or {self._alter(name)} DROP NOT NULL")

    def find_renames(self) -> dict[str, str]:
        names = {each.name for each in self.given.fields}
        fields = self.table.schema().fields
        removed = {each.name: each.field_type for each in fields if each.name not in names}
        return {
            new: f"{self._table} RENAME COLUMN {old} TO {new}"
            for new, old in new_names(self.added, removed).items()
        }

    def _add(self, new: Mapping[str, NestedField], present: Iterable[str]) -> None:
        if new and self.target.settings.schema_evolution == "none":
            names, known = ", ".join(new), ", ".join(present)
            hint = (
                f"add {names} to the table with an Iceberg client, write schemaEvolution: add, or"
                f" leave it out of the query; columns of the table: {known}"
            )
            self._refuse(f"it has no column {names}", hint)
            return
        spelled = {name.lower(): name for name in present}
        for name, column in new.items():
            other = spelled.get(name.lower())
            if name in self.target.settings.keys:
                hint = "add it with an Iceberg client, or give a column that has it that name"
                self._refuse(f"it has no column {name}, which is a key: no row has one", hint)
            elif other is not None:
                said = f"it has a column {other}, and the query gives {name}"
                self._refuse(said, "Spark takes them for one: spell it alike")
            self.added[name] = column.field_type

    def _compare(self, column: NestedField, given: NestedField) -> None:
        name, before, after = column.name, column.field_type, given.field_type
        if column.required and not given.required:
            said = f"its column {name} requires a value, and the query's may be null"
            self._refuse(said, f"{self._alter(name)} DROP NOT NULL")
        if accepts(before, after):
            return
        wider = is_wider(after, before)
        if wider and self.target.settings.schema_evolution == "widen":
            self.widened[name] = (before, after)
            return
        hint = f"cast it in the query: CAST({name} AS {before}), or give it another name"
        if wider:
            sql = "bigint" if isinstance(after, LongType) else after
            hint = f"write schemaEvolution: widen, or {self._alter(name)} TYPE {sql}"
        self._refuse(f"its column {name} is {before}, the query gives {after}", hint)

    @property
    def _table(self) -> str:
        return f"ALTER TABLE {self.target.name}"

    def _alter(self, column: str) -> str:
        return f"{self._table} ALTER COLUMN {column}"

    def _refuse(self, said: str, hint: str) -> None:
        self.problems.append(tables.problem(self.target, said, hint))


def _is_mine(target: IcebergTarget, table: Table) -> bool:
    return table.properties.get(tables.MADE_BY) == target.pipeline_uid


def _new_partitions(target: IcebergTarget, table: Table) -> tuple[PartitionField, ...] | None:
    wanted = target.settings.partition_by
    if wanted is None:
        return None
    present = [
        (table.schema().find_column_name(each.source_id), str(each.transform), each.name)
        for each in tables.fields_of(table.spec())
    ]
    asked = [(each.column, each.transform, each.name) for each in wanted]
    same = len(present) == len(asked) and all(
        one[:2] == other[:2] and other[2] in (None, one[2])
        for one, other in zip(present, asked, strict=True)
    )
    return None if same else wanted


def _other_partitions(
    target: IcebergTarget, table: Table, wanted: tuple[PartitionField, ...] | None
) -> Iterator[Problem]:
    """Yield what is wrong with the partitions. Only the pipeline that made a table decides how it
    is partitioned.
    """
    names = table.schema()
    for each in tables.fields_of(table.spec()):
        column = names.find_field(each.source_id)
        if is_float(column.field_type):
            message = f"it is partitioned by {column.name}, {column.field_type}"
            hint = "partition it by another column: what is not a number has no partition"
            yield tables.problem(target, message, hint)
    if wanted is None:
        return
    if _is_mine(target, table):
        yield from _find_used_names(target, table, wanted)
        return
    present = [
        f"{each.transform}({names.find_column_name(each.source_id)}) as {each.name}"
        for each in tables.fields_of(table.spec())
    ]
    now, said = (", ".join(each) or "nothing" for each in (present, map(str, wanted)))
    hint = "leave partitionBy out, or change the table with an Iceberg client"
    message = f"it is partitioned by {now}, the manifest says {said}"
    yield tables.problem(target, message, hint, "partitionBy")


def _find_used_names(
    target: IcebergTarget, table: Table, wanted: Iterable[PartitionField]
) -> Iterator[Problem]:
    columns = table.schema()
    had = {
        each.name: (columns.find_column_name(each.source_id), str(each.transform))
        for spec in table.specs().values()
        for each in spec.fields
    }
    for number, each in enumerate(wanted):
        before = had.get(each.field_name)
        if before is not None and before != (each.column, each.transform):
            message = f"a partition {each.field_name} is {before[1]}({before[0]}) in older files"
            hint = "give the new one another name: as: …"
            yield tables.problem(target, message, hint, f"partitionBy.{number}.as")


def _is_sorted_so(settings: IcebergSinkSettings, table: Table) -> bool:
    if settings.sort_by is None:
        return True
    wanted = [
        (each.column, SortDirection(each.order), tables.NULL_ORDERS[each.order])
        for each in settings.sort_by
    ]
    present = [
        (table.schema().find_column_name(each.source_id), each.direction, each.null_order)
        for each in table.sort_order().fields
        if isinstance(each.transform, IdentityTransform)
    ]
    return wanted == present


def _unfit_for_mode(target: IcebergTarget, table: Table) -> Iterator[Problem]:
    settings = target.settings
    if table.format_version > 2:
        message = f"it is of format version {table.format_version}, and PyIceberg writes 1 and 2"
        yield tables.problem(target, message, "take a table of format version 2")
    if settings.mode == "append":
        return
    if table.format_version < 2:
        alter = f"ALTER TABLE {target.name} SET TBLPROPERTIES ('format-version'='2')"
        message = f"it is of format version 1, and mode: {settings.mode} needs 2"
        yield tables.problem(target, message, f"make it so: {alter}", "mode")
    if settings.by_partition and not (tables.fields_of(table.spec()) or settings.partition_by):
        yield _no_partitions(target)


def _no_partitions(target: IcebergTarget) -> Problem:
    hint = "write partitionBy, or overwrite: table"
    return tables.problem(target, "it has no partitions to overwrite", hint, "overwrite")


def _find_untyped(target: IcebergTarget, schema: pa.Schema) -> Iterator[Problem]:
    """Yield a problem for each column that no table can have."""
    for each in schema:
        try:
            tables.iceberg_schema(pa.schema([each]))
        except (UnsupportedPyArrowTypeException, TypeError, ValueError):
            said = f"Iceberg has no type for {each.name}, {each.type}"
            yield tables.problem(target, said, f"cast it: CAST({each.name} AS STRING)")
    for name in schema.names:
        if "." in name and name.split(".")[0] in schema.names:
            said = f"column {name} has the name of a field of {name.split('.')[0]}"
            yield tables.problem(target, said, f"rename it: `{name}` AS …")


def _wrong_columns(
    settings: IcebergSinkSettings, columns: Schema, target: IcebergTarget
) -> Iterator[Problem]:
    """Yield what the manifest asks of columns that they do not support."""
    kinds = {each.name: each.field_type for each in columns.fields}
    yield from _wrong_keys(target, kinds)
    for number, part in enumerate(settings.partition_by or ()):
        kind = kinds[part.column]
        if is_float(kind) or not parse_transform(part.transform).can_transform(kind):
            message = f"{part.column} is {kind}, which cannot be partitioned by {part.transform}"
            hint = "year to hour need a date or a time, bucket and truncate a whole number or text"
            yield tables.problem(target, message, hint, f"partitionBy.{number}.transform")
        if part.field_name in kinds and part.field_name != part.column:
            message = f"a partition cannot be called {part.field_name}, as a column is"
            yield tables.problem(target, message, "name it: as: …", f"partitionBy.{number}")
    ordered = {f"sortBy.{n}.column": each.column for n, each in enumerate(settings.sort_by or ())}
    if settings.order_by is not None:
        ordered["orderBy"] = settings.order_by
    for path, column in ordered.items():
        if not kinds[column].is_primitive:
            message = f"{column} is {kinds[column]}: it has no order"
            yield tables.problem(target, message, "name another", path)


def _wrong_keys(target: IcebergTarget, kinds: Types) -> Iterator[Problem]:
    for number, key in enumerate(target.settings.keys):
        if not kinds[key].is_primitive or is_float(kinds[key]):
            hint = "a key is a whole number, a decimal, a text, a date or a time"
            yield tables.problem(target, f"key {key} is {kinds[key]}", hint, f"keys.{number}")
    flag = target.settings.delete_where
    if flag is not None and str(kinds[flag]) != "boolean":
        hint = "make it one in the query: … = 'd' AS deleted"
        said = f"deleteWhere {flag} is {kinds[flag]}, not boolean"
        yield tables.problem(target, said, hint, "deleteWhere")
