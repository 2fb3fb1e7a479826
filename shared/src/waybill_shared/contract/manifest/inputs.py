"""The model of an input of a manifest."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.connectors import CONNECTORS_MAX, FileConnector, with_names
from waybill_shared.contract.manifest.fields import Name, Partitions, Strict, Topic
from waybill_shared.contract.manifest.formats import RecordKeys, keys_needed
from waybill_shared.contract.manifest.starting import StartingOffsets
from waybill_shared.contract.manifest.tables import SqlTable, is_table, parse_table


class KafkaInput(Strict):
    """An input topic; created with `partitions` when it does not exist."""

    topic: Topic
    partitions: Partitions = 4


class Expectation(Strict):
    """A rule that each record of an input must keep: `expect` is a SQL predicate over its columns.

    What is null is not kept.
    """

    name: Name
    expect: str = Field(min_length=1, max_length=20_000)
    on_violation: Literal["dead_letter", "drop", "warn", "fail"] = "dead_letter"


class Deletes(Strict):
    """`column`: a BOOLEAN that is true in a record which says that its row is to be deleted."""

    column: str = Field(min_length=1)


class Input(RecordKeys):
    """A topic that a stage reads. `checks` sees to it that its keys go with its format."""

    model_config = ConfigDict(json_schema_extra={"allOf": [*keys_needed()]})

    name: Name
    kafka: KafkaInput
    key: str | None = None
    deletes: Deletes | None = None
    starting_offsets: StartingOffsets = "earliest"
    on_malformed: Literal["dead_letter", "drop", "fail"] = "dead_letter"
    expectations: tuple[Expectation, ...] = Field(default=(), max_length=64)
    on_unknown_field: Literal["ignore", "refuse"] = "ignore"
    connectors: tuple[FileConnector, ...] = Field(default=(), max_length=CONNECTORS_MAX)
    _ignored: tuple[str, ...] = PrivateAttr(default=())
    """What its table says without effect, and why."""

    @model_validator(mode="before")
    @classmethod
    def _name_connectors(cls, raw: object) -> object:
        if not isinstance(raw, dict) or "connectors" not in raw:
            return raw
        return {**raw, "connectors": with_names(raw["connectors"])}

    @model_validator(mode="wrap")
    @classmethod
    def _read_table(cls, raw: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read the columns, the key and the connectors of an input from its table as SQL. A table
        that cannot be read is kept as it is: the checks report what is wrong with it, and where.
        """
        text = raw.get("schema") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(text, str) or not is_table(text):
            return handler(raw)
        try:
            table = parse_table(text)
        except UserError:
            return handler(raw)
        found = handler({**raw, **_declared_by(table, raw)})
        found._ignored = table.ignored  # noqa: SLF001 - of this class
        return found

    @property
    def ignored(self) -> tuple[str, ...]:
        return self._ignored


def _declared_by(table: SqlTable, raw: Mapping[object, object]) -> dict[str, object]:
    name, key = raw.get("name"), raw.get("key")
    if isinstance(name, str) and table.name.lower() != name.lower():
        raise ValueError(f"the input is called {name}, and its table {table.name}: use one name")
    if key is not None and table.keys and key not in table.keys:
        raise ValueError(
            f"key is {key}, and the PRIMARY KEY {', '.join(table.keys)}: leave out key"
        )
    if table.connectors and raw.get("connectors"):
        raise ValueError("the table has connectors, and so has the input: write them in one place")
    found: dict[str, object] = {"schema": table.columns}
    if table.keys and key is None:
        found["key"] = table.keys[0]
    if table.connectors:
        found["connectors"] = table.connectors
    return found
