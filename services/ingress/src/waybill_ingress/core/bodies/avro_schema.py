"""Refuses schemas of Avro containers that cannot become records of an input."""

from collections.abc import Mapping
from typing import Any, Final

from fastavro.types import Schema

from waybill_ingress.core.encoders.avro_records import AvroRecords
from waybill_ingress.core.rows import RowReader, row_refusal
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

BLOCK_BYTES_MAX: Final = 2_000_000  # unpacked: writers make 16 to 64 kB
NESTED_BYTES_MAX: Final = 200_000  # where each byte may be an array or a map of its own
DEPTH_MAX: Final = 64
PRIMITIVES: Final = {"boolean", "int", "long", "float", "double", "bytes", "string"}


def check_schema(schema: Schema, rows: RowReader) -> int:
    """Refuse a schema that cannot become records of the input, before any record is read.

    Return how large a block may be.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise wrong_container("its schema is not that of a record")
    if not isinstance(rows.rule.form, AvroRecords):  # else Avro itself decides what fits
        refuse_lacking(schema, rows)
    types = SchemaTypes()
    types.depth(schema)
    return NESTED_BYTES_MAX if types.nested else BLOCK_BYTES_MAX


def refuse_lacking(schema: Mapping[str, Any], rows: RowReader) -> None:
    names = {field["name"] for field in schema["fields"]}
    columns = rows.rule.columns
    lacking = [c.name for c in columns if c.required and c.name not in names]
    if lacking or not any(column.name in names for column in columns):
        missing = lacking or [column.name for column in columns]
        reason = f"the writer's schema lacks {', '.join(map(repr, missing)):.300}"
        hint = "columns are fields of the same name, and those that are NOT NULL must be there"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)


class SchemaTypes:
    """The types of a schema, checked so that each value needs bytes.

    Of a type that needs none, or that contains itself, a few bytes could have any number of values.
    """

    def __init__(self) -> None:
        self.nested = False
        """True if there are arrays or maps."""
        self._depths: dict[str, int] = {}

    def depth(self, schema: object, inside: tuple[str, ...] = ()) -> int:
        found = self._depth(schema, inside) if len(inside) <= DEPTH_MAX else DEPTH_MAX + 1
        if found > DEPTH_MAX:
            raise wrong_container(f"its schema is nested deeper than {DEPTH_MAX}")
        return found

    def _depth(self, schema: object, inside: tuple[str, ...]) -> int:
        match schema:
            case str() as name:
                return self._named(name, inside)
            case list() as kinds if kinds:
                some = [each for each in kinds if each not in ("null", {"type": "null"})]
                return max((self.depth(each, inside) for each in some), default=0)
            case {"type": "record", "name": str() as name, "fields": list() as fields} if fields:
                within = (*inside, name)
                if len({each["name"] for each in fields}) < len(fields):
                    raise wrong_container(f"its schema has a field twice in {name!r:.100}")
                self._depths[name] = 1 + max(self.depth(each["type"], within) for each in fields)
                return self._depths[name]
            case {"type": "array", "items": items} | {"type": "map", "values": items}:
                self.nested = True
                return 1 + self.depth(items, (*inside, ""))
            case {"type": dict() | list() as inner}:
                return self.depth(inner, (*inside, ""))
        return self._plain(schema)

    def _plain(self, schema: object) -> int:
        match schema:
            case {"type": "fixed", "name": str() as name, "size": int() as size} if size > 0:
                self._depths[name] = 0
            case {"type": "enum", "name": str() as name}:
                self._depths[name] = 0
            case {"type": str() as kind} if kind in PRIMITIVES:
                pass
            case _:
                raise wrong_container(
                    f"its schema has a type that is not accepted: {schema!r:.100}"
                )
        return 0

    def _named(self, name: str, inside: tuple[str, ...]) -> int:
        if name in inside:
            raise wrong_container(f"its schema has type {name!r:.100} inside of itself")
        if name in PRIMITIVES:
            return 0
        if name not in self._depths:
            raise wrong_container(f"its schema has a type that is not accepted: {name!r:.100}")
        return self._depths[name]


def wrong_container(reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_AVRO, f"the body is not an accepted Avro container: {reason}")
