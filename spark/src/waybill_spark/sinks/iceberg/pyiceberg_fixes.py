"""Mends PyIceberg 0.12.

A list of structs, or a map to them, that is null stays null. PyIceberg builds such arrays again
from their parts, when rows are written and when they are read, and forgets which were null. They
became empty ones, also in rows that are only copied from one file to another.

The greatest text of a file, cut for its statistics, may end in U+D7FF. PyIceberg uses the next code
point, which is no character, and the file could not be written.

A property of a table may name the code that says where files go, which it would import and call.

A table that is partitioned twice by one column, as by buckets of 4 and of 16, could not be written.
"""

import sys
from functools import cached_property
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg.io.pyarrow
import pyiceberg.table.locations
from pyiceberg.io.pyarrow import ArrowProjectionVisitor
from pyiceberg.partitioning import PartitionKey, partition_record_value
from pyiceberg.table import TableProperties
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.typedef import Properties, Record
from pyiceberg.types import ListType, MapType

LAST_BEFORE_SURROGATES: Final = "\ud7ff"
FIRST_AFTER_SURROGATES: Final = "\ue000"


class NullsKept(ArrowProjectionVisitor):
    """Its two methods take the place of the library's own, which makes its visitors itself."""

    def list(
        self, list_type: ListType, list_array: pa.Array | None, value_array: pa.Array | None
    ) -> pa.Array | None:
        return _with_nulls_of(list_array, _list(self, list_type, list_array, value_array))

    def map(
        self,
        map_type: MapType,
        map_array: pa.Array | None,
        key_result: pa.Array | None,
        value_result: pa.Array | None,
    ) -> pa.Array | None:
        made = _map(self, map_type, map_array, key_result, value_result)
        return _with_nulls_of(map_array, made)


_list, _map = ArrowProjectionVisitor.list, ArrowProjectionVisitor.map


def mend() -> None:
    visitor: Any = ArrowProjectionVisitor
    visitor.list, visitor.map = NullsKept.list, NullsKept.map
    library: Any = pyiceberg.io.pyarrow
    library.truncate_upper_bound_text_string = upper_bound
    locations: Any = pyiceberg.table.locations
    locations._import_location_provider = default_provider
    partition, key = cached_property(_partition), cast(Any, PartitionKey)
    partition.__set_name__(PartitionKey, "partition")
    key.partition = partition


def default_provider(_: str, location: str, properties: Properties) -> LocationProvider:
    """Return the provider of a table that names none: code that a table names is never run."""
    named = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL
    rest = {name: value for name, value in properties.items() if name != named}
    return load_location_provider(location, rest)


def _partition(key: PartitionKey) -> Record:
    """Return the values by their fields; the library looks for the field by its column."""
    values = (
        partition_record_value(partition_field=each.field, value=each.value, schema=key.schema)
        for each in key.field_values
    )
    return Record(*values)


def upper_bound(value: str, length: int | None) -> str | None:
    """Return the least text of that length which is not less than `value`; None if there is
    none.
    """
    cut = value[:length]
    if cut == value:
        return value
    last = chr(sys.maxunicode)
    kept = cut.rstrip(last)
    if not kept:
        return None
    end = kept[-1]
    following = FIRST_AFTER_SURROGATES if end == LAST_BEFORE_SURROGATES else chr(ord(end) + 1)
    return kept[:-1] + following


def _with_nulls_of(given: pa.Array | None, made: pa.Array | None) -> pa.Array | None:
    if given is None or made is None or given.null_count == made.null_count:
        return made
    masked = pc.if_else(given.is_valid(), made, pa.scalar(None, made.type))
    return masked.cast(made.type)  # with the ids of its fields
