"""What an Iceberg table is to be as a manifest says: how it is made, and how it is altered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionSpec
from pyiceberg.partitioning import PartitionField as SpecField
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table, Transaction
from pyiceberg.table.sorting import NullOrder, SortDirection, SortOrder
from pyiceberg.table.sorting import SortField as OrderField
from pyiceberg.transforms import IdentityTransform, VoidTransform, parse_transform
from pyiceberg.types import IcebergType
from sqlalchemy.exc import IntegrityError, ProgrammingError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings, PartitionField
from waybill_spark.sinks.altering import describe_new
from waybill_spark.sinks.iceberg.file_access import refuse_folders_elsewhere

UNDEFINED_TABLE: Final = "42P01"
MADE_BY: Final = "waybill.made-by"
NULL_ORDERS: Final = {"asc": NullOrder.NULLS_FIRST, "desc": NullOrder.NULLS_LAST}  # as Spark's


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTarget:
    """A sink's table, in the words of its manifest."""

    sink: str
    settings: IcebergSinkSettings
    pipeline_uid: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """The properties that the manifest defines for all, in addition to those of the sink."""

    @property
    def name(self) -> str:
        return self.settings.table

    def properties_to_set(self, *, mine: bool = True) -> dict[str, str]:
        """Return the wanted properties.

        `mine` is True if this pipeline decides what the table is.
        """
        return {**(self.properties if mine else {}), **self.settings.properties}

    def without_flag(self, schema: pa.Schema) -> pa.Schema:
        """Return those of the rows' columns that are the table's."""
        flag = self.settings.delete_where
        return pa.schema([field for field in schema if field.name != flag])


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes of the next commit apart from rows."""

    added: Mapping[str, IcebergType] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """By added column: the statement that would rename a column to it that the query lost."""
    widened: Mapping[str, tuple[IcebergType, IcebergType]] = field(default_factory=dict)
    partitions: tuple[PartitionField, ...] | None = None
    new_order: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> Iterator[str]:
        """Yield what a person would want to know before."""
        yield from describe_new(self.added, self.renamed)
        for name, (before, after) in self.widened.items():
            yield f"gets a wider column {name}: {after}, was {before}"
        if self.partitions is not None:
            said = ", ".join(map(str, self.partitions)) or "nothing"
            yield f"gets new partitions: {said}; files that are there stay as they are"

    def stage(self, transaction: Transaction, settings: IcebergSinkSettings) -> None:
        if self.added or self.widened:
            with transaction.update_schema() as update:
                for name, kind in self.added.items():
                    update.add_column((name,), kind)
                for name, (_, after) in self.widened.items():
                    update.update_column((name,), after)
        if self.partitions is not None:
            with transaction.update_spec() as spec:
                for each in fields_of(transaction.table_metadata.spec()):
                    spec.remove_field(each.name)
                for wanted in self.partitions:
                    spec.add_field(wanted.column, wanted.transform, wanted.field_name)
        if self.new_order:
            _stage_order(transaction, settings)
        if self.properties:
            transaction.set_properties(dict(self.properties))


NOTHING: Final = Alteration()


def find_table(catalog: Catalog, name: str) -> Table | None:
    """Return the table; OutsideWarehouse if a folder of it is there."""
    try:
        table = catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except ProgrammingError as error:
        if is_no_catalog_yet(error):
            return None
        raise
    refuse_folders_elsewhere(table)
    return table


def is_no_catalog_yet(error: ProgrammingError) -> bool:
    """Return True if the database lacks the tables of a catalog."""
    return getattr(error.orig, "sqlstate", None) == UNDEFINED_TABLE


def make_table(catalog: Catalog, target: IcebergTarget, schema: pa.Schema) -> Table:
    """Make the table with the rows' own columns. If another driver is faster, its table is used."""
    namespace = target.name.rsplit(".", 1)[0]
    try:
        if not catalog.namespace_exists(namespace):
            catalog.create_namespace(namespace)
    except (NamespaceAlreadyExistsError, IntegrityError):
        pass  # two that begin at once: one of them makes it
    columns = iceberg_schema(target.without_flag(schema))
    try:
        catalog.create_table(
            target.name,
            columns,
            partition_spec=_spec(target.settings, columns),
            sort_order=_order(target.settings, columns),
            properties={**target.properties_to_set(), MADE_BY: target.pipeline_uid},
        )
    except TableAlreadyExistsError:
        pass
    except ValueError as error:
        raise UserError([problem(target, f"it cannot be made: {error}", "")]) from error
    table = find_table(catalog, target.name)
    if table is not None:
        return table
    hint = "take another name; a view or the like has this one"
    raise UserError([problem(target, "it is no table", hint)])


def iceberg_schema(schema: pa.Schema) -> Schema:
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))


def problem(target: IcebergTarget, what: str, hint: str, path: str = "table") -> Problem:
    message = f"sink {target.sink}: table {target.name}: {what}"
    return Problem(message=message, path=path, hint=hint)


def fields_of(spec: PartitionSpec) -> list[SpecField]:
    """Return the fields, without the void ones that a table of format version 1 keeps for removed
    fields.
    """
    return [each for each in spec.fields if not isinstance(each.transform, VoidTransform)]


def _spec(settings: IcebergSinkSettings, columns: Schema) -> PartitionSpec:
    return PartitionSpec(
        *(
            SpecField(
                source_id=columns.find_field(each.column).field_id,
                field_id=PARTITION_FIELD_ID_START + number,
                transform=parse_transform(each.transform),
                name=each.field_name,
            )
            for number, each in enumerate(settings.partition_by or ())
        )
    )


def _order(settings: IcebergSinkSettings, columns: Schema) -> SortOrder:
    return SortOrder(
        *(
            OrderField(
                source_id=columns.find_field(each.column).field_id,
                transform=IdentityTransform(),
                direction=SortDirection(each.order),
                null_order=NULL_ORDERS[each.order],
            )
            for each in settings.sort_by or ()
        )
    )


def _stage_order(transaction: Transaction, settings: IcebergSinkSettings) -> None:
    with transaction.update_sort_order() as order:
        for each in settings.sort_by or ():
            add = order.asc if each.order == "asc" else order.desc
            add(each.column, IdentityTransform(), NULL_ORDERS[each.order])


def has_same_layout(table: Table, other: Table) -> bool:
    """Return True if both are one table, with the same schema, partitioning and sort order."""
    one, two = table.metadata, other.metadata
    return (
        (one.table_uuid, one.current_schema_id) == (two.table_uuid, two.current_schema_id)
        and one.default_spec_id == two.default_spec_id
        and one.default_sort_order_id == two.default_sort_order_id
    )
