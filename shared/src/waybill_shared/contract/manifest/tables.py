"""Tables as SQL: `CREATE TABLE name (column TYPE NOT NULL, …, PRIMARY KEY (column))`.

An input may have one in `schema`. What Waybill cannot keep is refused by name and place: a word
that is passed over would be a promise that nobody keeps.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.columns import (
    DEPTH_MAX,
    Column,
    Fields,
    Typed,
    array_of,
    quoted,
)
from waybill_shared.contract.manifest.fields import IN_WORDS, NAME_PATTERN
from waybill_shared.contract.manifest.foreign import find_statement
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.manifest.table_properties import COMMENTS, SqlParser
from waybill_shared.contract.manifest.values import SIMPLE

MADE: Final = ("TABLE", "VIEW", "MATERIALIZED", "LOCAL", "RECURSIVE", "OR", "TEMPORARY", "TYPE")
BEGINNING: Final = re.compile(
    rf"{COMMENTS}CREATE{COMMENTS}(?:{'|'.join((*MADE, 'FUNCTION', 'INDEX'))})\b",
    re.ASCII | re.IGNORECASE,
)
OUR_NAMES: Final = {
    **dict.fromkeys(("VARCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("INTEGER", "INT4", "INT32"), "INT"),
    **dict.fromkeys(("INT8", "INT64"), "BIGINT"),
    **dict.fromkeys(("REAL", "FLOAT4", "FLOAT32"), "FLOAT"),
    **dict.fromkeys(("FLOAT8", "FLOAT64"), "DOUBLE"),
    **dict.fromkeys(("NUMERIC", "DEC"), "DECIMAL"),
    "BOOL": "BOOLEAN",
}
"""Types that SQL calls otherwise."""
OF_TABLES: Final = (
    "CHECK",
    "CONSTRAINT",
    "FOREIGN",
    "UNIQUE",
    "WATERMARK",
)  # no column is so called
ONE_EACH: Final = "an input is one table; `waybill convert` makes a manifest of several"


Keys = dict[str, None]
"""Names of columns, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTable:
    """`sql` is as it was written, `columns` the text of a column list; `keys` are those of its
    PRIMARY KEY, and `connectors` as an input has them. `ignored`: what is of no effect, and why."""

    name: str
    sql: str
    columns: str
    keys: tuple[str, ...]
    connectors: list[dict[str, JsonValue]]
    ignored: tuple[str, ...] = ()


def is_table(text: str) -> bool:
    """Return True if `text` is meant as SQL, and not as a list of columns."""
    return BEGINNING.match(text) is not None


def parse_table(sql: str) -> SqlTable:
    """Parse one table. Raise UserError with the place in the text if it is not exactly one."""
    parser = _TableParser(sql, SIMPLE)
    table = parser.table()
    if parser.peek() is not None:
        raise parser.error(f"expected the end of the text, found {parser.found()}", hint=ONE_EACH)
    return table


def parse_tables(sql: str) -> tuple[SqlTable, ...]:
    """Parse the tables of a file: one at least, each with a name that an input may have.

    Raise UserError with the place otherwise.
    """
    parser = _TableParser(sql, SIMPLE)
    tables: dict[str, SqlTable] = {}
    while not tables or parser.peek() is not None:
        before = parser.at
        table = parser.table()
        name = table.name.lower()
        if name in tables:
            raise parser.error(f"table {table.name!r} stands twice", at=before)
        if re.fullmatch(NAME_PATTERN, name) is None:
            message = f"no input can be called {name!r}"
            raise parser.error(message, at=before, hint=IN_WORDS[NAME_PATTERN])
        tables[name] = table
    return tuple(tables.values())


class _TableParser(SqlParser):
    def table(self) -> SqlTable:
        start = self.skip(self.at)
        other = find_statement(self.ddl, Spot.TABLES, self.at)
        if other is not None:
            raise UserError([other])
        self.keyword("CREATE", "a table begins with CREATE TABLE")
        self._table_word()
        name = self.name("the name of a table")
        self.expect("(")
        fields: Fields = {}
        keys: Keys = {}
        self._element(fields, keys)
        while self.peek() == ",":
            self.expect(",")
            self._element(fields, keys)
        if self.peek() != ")":
            raise self.error(f"expected a comma or ')', found {self.found()}")
        self.expect(")")
        connectors, ignored = self.properties()
        self._end()
        return SqlTable(
            name=name,
            sql=self.ddl[start : self.at],
            columns=_list_of(fields.values(), keys),
            keys=tuple(keys),
            connectors=connectors,
            ignored=ignored,
        )

    def _table_word(self) -> None:
        before = self.at
        word = self.word("TABLE").upper()
        if word != "TABLE":
            raise self.error(f"CREATE {word} is not supported: only CREATE TABLE is", at=before)
        if self.is_next("IF"):
            for each in ("IF", "NOT", "EXISTS"):
                self.keyword(each)

    def _end(self) -> None:
        if self.peek() == ";":
            self.expect(";")
        elif self.peek() is not None:
            self.refuse_foreign(Spot.AFTER)
            raise self.error(f"expected the end of the table, found {self.found()}")

    def _element(self, fields: Fields, keys: Keys) -> None:
        """Read a column, or the PRIMARY KEY after the columns."""
        if self.is_next("PRIMARY"):
            self._key_of_table(fields, keys)
        else:
            self._column(fields, keys)

    def _key_of_table(self, fields: Fields, keys: Keys) -> None:
        self._primary_key(keys)
        self.expect("(")
        self._key(fields, keys)
        while self.peek() == ",":
            self.expect(",")
            self._key(fields, keys)
        self.expect(")")

    def _column(self, fields: Fields, keys: Keys) -> None:
        if (self.peek() or "").upper() in OF_TABLES:
            self.refuse_foreign(Spot.TABLE)
        before = self.at
        name = self.name("a column name")
        self.refuse_foreign(Spot.TABLE)
        typed = self.type()
        required = nullable = False
        while (self.peek() or ",") not in ",)":
            if self.is_next("PRIMARY"):
                self._primary_key(keys)
                keys[name] = None
            elif self.is_next("NULL"):
                self.word("NULL")
                nullable = True
            elif self.not_null():
                required = True
            else:
                self.refuse_foreign(Spot.TABLE)
                raise self.error(f"expected a comma or ')', found {self.found()}")
        if nullable and (required or name in keys):
            raise self.error(f"column {name!r} is NULL and NOT NULL", at=before)
        self.add(
            fields, before, Column(name=name, type=typed.text, check=typed.check, required=required)
        )

    def _primary_key(self, keys: Keys) -> None:
        before = self.at
        for each in ("PRIMARY", "KEY"):
            self.keyword(each)
        if keys:
            raise self.error("PRIMARY KEY stands twice", at=before)

    def _key(self, fields: Fields, keys: Keys) -> None:
        before = self.at
        name = self.name("a column name")
        found = fields.get(name.lower())
        if found is None:
            hint = f"columns are {', '.join(field.name for field in fields.values()):.200}"
            raise self.error(f"no column {name!r} stands before it", at=before, hint=hint)
        if found.name in keys:
            raise self.error(f"column {name!r} stands twice", at=before)
        keys[found.name] = None

    def type(self, depth: int = 0) -> Typed:
        """Read a type. The word ARRAY after it makes a list of it."""
        typed = super().type(depth)
        if self.is_next("ARRAY"):
            self.word("ARRAY")
            typed = array_of(typed)
        if depth + typed.depth > DEPTH_MAX:
            raise self.error(f"types nest deeper than {DEPTH_MAX}")
        return typed

    def type_name(self, word: str, before: int) -> str:
        if word == "DOUBLE" and self.is_next("PRECISION"):
            self.word("PRECISION")
        name = OUR_NAMES.get(word, word)
        if name == "STRING" and self.peek() == "(":
            hint = f"write {word}; a rule such as `length(name) <= 20` in expectations bounds it"
            raise self.error("the length of a text is not bounded", at=before, hint=hint)
        return name

    def name(self, wanted: str) -> str:
        before = self.at
        word = self.word(wanted)
        if word[0].isdigit():
            raise self.error(f"expected {wanted}, found {word[:20]!r}", at=before)
        if word[0] not in '`"':
            return word
        name = word[1:-1] if word[0] == "`" else word[1:-1].replace('""', '"')
        if "`" in name:
            raise self.error("a name has no backtick", at=before)
        return name

    def is_word(self, token: str) -> bool:
        if token[0] in '"`':
            return len(token) > 1
        return token[0] == "_" or (token[0].isascii() and token[0].isalnum())


def _list_of(columns: Iterable[Column], keys: Keys) -> str:
    """Return the columns as a text. A column of the key is never null."""
    return ", ".join(
        f"{quoted(each.name)} {each.type}"
        + (" NOT NULL" if each.required or each.name in keys else "")
        for each in columns
    )
