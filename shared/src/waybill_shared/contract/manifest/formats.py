"""The formats of an input's records in Kafka: the keys that a manifest has for each, its columns,
and the modules that write and read it.

A new format is a row of `FORMATS`, with its keys in `RecordKeys` and two modules. That of
`waybill_ingress` makes records of rows, and that of `waybill_spark` makes rows of records. All
other code reads the table.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import Field, JsonValue

from waybill_shared.contract.formats.avro_schemas import columns_of
from waybill_shared.contract.formats.csv_lines import CsvForm
from waybill_shared.contract.manifest.columns import Column, parse_columns
from waybill_shared.contract.manifest.fields import Strict
from waybill_shared.contract.manifest.tables import is_table, parse_table

FormatName = Literal["json", "csv", "avro", "raw"]
SCHEMA_CHARACTERS_MAX: Final = 20_000  # of the columns of an input
RAW_COLUMNS: Final = "key BINARY, value BINARY, headers MAP<STRING,BINARY>, timestamp TIMESTAMP"
DEFAULT: Final = "json"


class RecordKeys(Strict):
    """The keys of an input that say what its records are. `FORMATS` says which go together."""

    format: FormatName = DEFAULT
    declared: str | None = Field(
        default=None,
        alias="schema",
        min_length=1,
        json_schema_extra={"maxLength": SCHEMA_CHARACTERS_MAX},  # which the checks see to
    )
    csv: CsvForm | None = None
    avro_schema: dict[str, JsonValue] | None = None

    @property
    def columns(self) -> str:
        """The columns as the text of a schema. Raise UserError if its format has none so."""
        return FORMATS[self.format].columns(self)

    def list_columns(self) -> tuple[Column, ...]:
        """Parse `schema` into columns. Raise UserError if its text is wrong."""
        if self.declared is not None and is_table(self.declared):
            parse_table(self.declared)
        return parse_columns(self.columns, binary=FORMATS[self.format].binary)

    def form(self) -> dict[str, JsonValue]:
        """Return the keys that say how a record of these columns is written."""
        keys = RecordKeys.model_fields.keys() - {"format", "declared"}
        return self.model_dump(mode="json", include=set(keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFormat:
    """One format: what a manifest says of it, and who writes and reads its records."""

    columns: Callable[[RecordKeys], str]
    needs: str | None
    """The key that its inputs must have: it says the columns."""
    keys: frozenset[str]
    """The keys that go with it, of those that do not go with all formats."""
    examples: Mapping[str, str]
    """A value for each of its own keys, for hints."""
    manifest: str
    """The lines of an input of this format, for the description of the API."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to do instead of a key that does not go with it."""
    writer: str | None = None
    """The module of `waybill_ingress` that makes records of rows by its `form_of`. None: a record
    is the JSON that was sent."""
    reader: str
    """The module of `waybill_spark` that makes rows of records, by its `read` and `why`."""
    binary: bool = False
    """True if a column may be BINARY."""
    nested: bool = True
    """True if a column may be an array, a map or a struct."""
    text: bool = True
    """True if people can read a record."""
    whole: bool = False
    """True if its columns have more of a record than the value."""


SCHEMA_EXAMPLE: Final = '"order_id BIGINT, amount DOUBLE"'
DECODED: Final = frozenset({"key", "deletes", "onMalformed", "onUnknownField", "connectors"})
"""The keys that need columns which a record may not fit."""
ORDERS: Final = """\
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
    key: order_id
"""

FORMATS: Final[Mapping[str, InputFormat]] = {
    "json": InputFormat(
        columns=lambda keys: keys.declared or "",
        needs="schema",
        keys=DECODED | {"schema"},
        examples={"schema": SCHEMA_EXAMPLE},
        manifest=ORDERS,
        reader="waybill_spark.driver.reading.formats.json_records",
    ),
    "csv": InputFormat(
        columns=lambda keys: keys.declared or "",
        needs="schema",
        keys=DECODED | {"schema", "csv"},
        examples={"schema": SCHEMA_EXAMPLE, "csv": "{delimiter: tab}"},
        manifest='    csv: {delimiter: ";", nullText: "NULL"}\n' + ORDERS,
        writer="waybill_ingress.core.encoders.csv_records",
        reader="waybill_spark.driver.reading.formats.csv_records",
        nested=False,
    ),
    "avro": InputFormat(
        columns=lambda keys: columns_of(keys.avro_schema or {}),
        needs="avroSchema",
        keys=DECODED | {"avroSchema"},
        examples={
            "avroSchema": "{type: record, name: order, fields: [{name: order_id, type: long}]}"
        },
        manifest="""\
    avroSchema:
      type: record
      name: order
      fields:
        - {name: order_id, type: long}
        - {name: customer, type: ["null", string], default: null}
    key: order_id
""",
        hints={"schema": "leave it out: the fields of avroSchema are the columns"},
        writer="waybill_ingress.core.encoders.avro_records",
        reader="waybill_spark.driver.reading.formats.avro_records",
        binary=True,
        text=False,
    ),
    "raw": InputFormat(
        columns=lambda _: RAW_COLUMNS,
        whole=True,
        needs=None,
        keys=frozenset(),
        examples={},
        manifest="",
        hints={
            "schema": f"leave it out: the columns are {RAW_COLUMNS}",
            "key": "leave it out: over HTTP the key is the parameter `key` of the request",
            "onMalformed": "leave it out: any bytes are a raw record",
        },
        writer="waybill_ingress.core.encoders.raw_records",
        reader="waybill_spark.driver.reading.formats.raw_records",
        binary=True,
        text=False,
    ),
}


def formats_with(key: str) -> tuple[str, ...]:
    """Return the formats that a key goes with; all of them for a key that no row names."""
    return tuple(name for name, row in FORMATS.items() if key in row.keys) or tuple(FORMATS)


def keys_needed() -> Iterator[JsonValue]:
    """Yield what a JSON schema says of the keys that inputs of a format must have."""
    for key in dict.fromkeys(row.needs for row in FORMATS.values() if row.needs is not None):
        names: list[JsonValue] = [name for name, row in FORMATS.items() if row.needs == key]
        said: list[JsonValue] = [] if DEFAULT in names else ["format"]
        yield {
            "if": {"properties": {"format": {"enum": names}}, "required": said},
            "then": {"required": [key]},
        }
