"""What a manifest says of an Iceberg table: how rows go in, and what the table is to be."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from waybill_shared.contract.manifest import iceberg_properties
from waybill_shared.contract.manifest.fields import ColumnName, Name, Strict, TableName
from waybill_shared.contract.manifest.maintenance import Maintenance, TableTask, age_ms
from waybill_shared.contract.manifest.sink_settings import TableSettings
from waybill_shared.contract.token_life import TOKEN_LIFE

LOCAL: Final = "lakehouse"
PROPERTIES_MAX: Final = 64
TRANSFORM: Final = re.compile(r"identity|year|month|day|hour|(?:bucket|truncate)\[[1-9]\d{0,8}\]")
CALL: Final = re.compile(r"(?:(\w+)\((?:(\d+), ?)?)?([A-Za-z_]\w*)\)?", re.ASCII)
"""A partition as SQL has it."""


class PartitionField(Strict):
    """`as`: what the field is called; Iceberg has a name for each transform."""

    column: ColumnName
    transform: str = Field(
        default="identity", json_schema_extra={"pattern": f"^({TRANSFORM.pattern})$"}
    )
    name: ColumnName | None = Field(default=None, alias="as")

    @field_validator("transform")
    @classmethod
    def _is_known(cls, transform: str) -> str:
        if not TRANSFORM.fullmatch(transform):
            raise ValueError(
                f"{transform!r} is no transform; there are identity, year, month, day, hour,"
                " bucket[n] and truncate[n] with a number from 1, for example bucket[16]"
            )
        return transform

    @property
    def is_of_time(self) -> bool:
        return self.transform in ("year", "month", "day", "hour")

    @property
    def field_name(self) -> str:
        """The name in the table, as PyIceberg has it."""
        if self.name is not None:
            return self.name
        kind, _, number = self.transform.rstrip("]").partition("[")
        suffix = {"identity": "", "bucket": f"_bucket_{number}", "truncate": f"_trunc_{number}"}
        return self.column + suffix.get(kind, f"_{kind}")

    def __str__(self) -> str:
        named = "" if self.name is None else f" as {self.name}"
        return f"{self.transform}({self.column}){named}"


class SortField(Strict):
    column: ColumnName
    order: Literal["asc", "desc"] = "asc"


def partition_entry(text: str) -> str:
    """Return the entry that is meant by `day(at)`, `bucket(16, id)` or `at`; empty if none is."""
    found = CALL.fullmatch(text.strip())
    if found is None:
        return ""
    transform, number, column = found.groups()
    if transform is None:
        return f"{{column: {column}}}"
    written = {"years": "year", "months": "month", "days": "day", "hours": "hour"}.get(
        transform, transform
    )
    with_number = f'"{written}[{number}]"' if number else written
    if not TRANSFORM.fullmatch(with_number.strip('"')):
        return ""
    return f"{{column: {column}, transform: {with_number}}}"


def sort_entry(text: str) -> str:
    """Return the entry that is meant by `at desc` or `at`; empty if none is."""
    column, _, order = text.strip().partition(" ")
    if not column.isidentifier() or order.lower() not in ("", "asc", "desc"):
        return ""
    return f"{{column: {column}, order: {order.lower()}}}" if order else f"{{column: {column}}}"


class IcebergSinkSettings(TableSettings):
    connection: Name = LOCAL
    """The local catalog, if the file of connections has none of that name."""
    table: TableName
    mode: Literal["append", "overwrite", "upsert"] = "append"
    overwrite: Literal["table", "partitions"] | None = None
    keys: tuple[ColumnName, ...] = Field(default=(), max_length=32)
    order_by: ColumnName | None = None
    delete_where: ColumnName | None = None
    partition_by: tuple[PartitionField, ...] | None = Field(default=None, max_length=16)
    """None: as the table has it."""
    sort_by: tuple[SortField, ...] | None = Field(default=None, min_length=1, max_length=16)
    properties: dict[str, str] = Field(
        default={}, max_length=PROPERTIES_MAX, json_schema_extra=iceberg_properties.names_schema()
    )
    schema_evolution: Literal["none", "add", "widen"] = "none"
    maintenance: Maintenance = Maintenance()

    @field_validator("properties")
    @classmethod
    def _are_listed(cls, properties: dict[str, str]) -> dict[str, str]:
        refused = [
            InitErrorDetails(type=_refusal(*why), loc=(name,), input=value)
            for name, value in properties.items()
            if (why := iceberg_properties.why_refused(name, value)) is not None
        ]
        if refused:
            raise ValidationError.from_exception_data("properties", refused)
        return properties

    @model_validator(mode="after")
    def _goes_together(self) -> "IcebergSinkSettings":
        if self.overwrite is not None and self.mode != "overwrite":
            raise ValueError(f"overwrite needs mode: overwrite; it is {self.mode}")
        if self.overwrite == "partitions" and self.partition_by == ():
            raise ValueError("overwrite: partitions needs a table that has some: see partitionBy")
        partitions, order = self.partition_by or (), self.sort_by or ()
        _refuse_twice("partitionBy", [(p.column, p.transform) for p in partitions])
        _refuse_twice("partitionBy", [p.field_name for p in partitions])
        _refuse_two_times(partitions)
        _refuse_twice("sortBy", [field.column for field in order])
        unwritten = self.delete_where
        for name, columns in (
            ("partitionBy", [field.column for field in partitions]),
            ("sortBy", [field.column for field in order]),
        ):
            if unwritten is not None and unwritten in columns:
                raise ValueError(f"{name}: {unwritten} is the deleteWhere, which is not written")
        return self

    @property
    def columns_named(self) -> Mapping[str, str]:
        partitions = {
            f"partitionBy.{number}.column": field.column
            for number, field in enumerate(self.partition_by or ())
        }
        order = {
            f"sortBy.{number}.column": field.column
            for number, field in enumerate(self.sort_by or ())
        }
        return {**super().columns_named, **partitions, **order}

    @property
    def repeatable(self) -> bool:
        return False

    @property
    def maintenance_tasks(self) -> Mapping[str, TableTask]:
        return self.maintenance.tasks

    @property
    def gathers(self) -> bool:
        return False

    @property
    def replaces(self) -> str:
        if self.mode != "overwrite":
            return ""
        return "the partitions that its rows lie in" if self.by_partition else "the table"

    @property
    def cautions(self) -> tuple[str, ...]:
        expiry = self.maintenance.expire_snapshots
        if expiry is None or age_ms(expiry.older_than) >= age_ms(TOKEN_LIFE):
            return super().cautions
        early = (
            f"snapshots go after {expiry.older_than}, and tokens name them for {TOKEN_LIFE}:"
            " those of older ones cannot be read"
        )
        return (*super().cautions, early)

    @property
    def by_partition(self) -> bool:
        return self.overwrite == "partitions"


def _refusal(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("property", "{message}", {"message": message, "hint": hint})


def _refuse_two_times(partitions: Iterable[PartitionField]) -> None:
    seen: dict[str, str] = {}
    for field in partitions:
        if field.is_of_time:
            other = seen.setdefault(field.column, field.transform)
            if other != field.transform:
                both = f"{field.column} by {other} and by {field.transform}"
                raise ValueError(f"partitionBy has {both}: the finer one is enough")


def _refuse_twice(key: str, values: Iterable[object]) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            told = " by ".join(value) if isinstance(value, tuple) else value
            raise ValueError(f"{key} has {told} twice")
        seen.add(value)
