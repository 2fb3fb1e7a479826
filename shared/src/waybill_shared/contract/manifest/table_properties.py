"""What a table as SQL says after its columns, `WITH (…)`, and how SQL is split into words."""

import json
import re
from typing import ClassVar, Final

from pydantic import JsonValue

from waybill_shared.contract.manifest.columns import ColumnParser
from waybill_shared.contract.manifest.connectors import connectors_of
from waybill_shared.contract.manifest.foreign import find_foreign, tell_foreign
from waybill_shared.contract.manifest.foreign_words import Spot

COMMENTS: Final = r"(?:\s++|--[^\n]*+|/\*[\s\S]*?\*/)*+"  # possessive: nothing is tried twice
CONNECTORS: Final = "connectors"
BARE_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


class SqlParser(ColumnParser):
    SKIPPED: ClassVar = re.compile(COMMENTS, re.ASCII)
    WORD: ClassVar = re.compile(
        r"""`[^`]+`|"(?:[^"]|"")+"|'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_]*|\d+|[^\s]""", re.ASCII
    )

    def properties(self) -> tuple[list[dict[str, JsonValue]], tuple[str, ...]]:
        """Read `WITH (…)`; return connectors, and why the rest has no effect."""
        connectors: list[dict[str, JsonValue]] = []
        seen: dict[str, str] = {}
        separator = "WITH"
        while self.is_next(separator):
            self._begin(separator)
            before = self.at
            key, why = self._property()
            if key in seen:
                raise self.error(f"WITH ({key!r:.60}) stands twice", at=before)
            seen[key] = why
            self.expect("=")
            if key == CONNECTORS:
                connectors = self._connectors()
            else:
                self._text("a value")
            separator = ","
        if seen:
            self.expect(")")
        return connectors, tuple(why for why in seen.values() if why)

    def _begin(self, separator: str) -> None:
        """Read what is in front of a property."""
        if separator == ",":
            self.expect(",")
        else:
            self.word("WITH")
            self.expect("(")

    def _property(self) -> tuple[str, str]:
        """Read the name of one that is accepted; return also why it has no effect."""
        before = self.at
        quoted = (self.peek() or "")[:1] == "'"
        key = self._text("a property")[0] if quoted else self._bare_property()
        if key == CONNECTORS:
            return key, ""
        row = find_foreign(Spot.PROPERTY, key)
        if row is not None and row.ignored:
            return key, f"WITH ({key!r}) has no effect: {row.why}; {row.way}"
        said = tell_foreign(Spot.PROPERTY, key)
        message, hint = said or (f"WITH ({key!r:.60}) is not supported", "leave it out")
        raise self.error(message, at=before, hint=hint)

    def _bare_property(self) -> str:
        """Read a name without quotes, as Arroyo has them."""
        found = BARE_PROPERTY.match(self.ddl, self.skip(self.at))
        if found is None:
            raise self.error(f"expected a property in '', found {self.found()}")
        self.at = found.end()
        return found[0]

    def _connectors(self) -> list[dict[str, JsonValue]]:
        text, start = self._text("JSON")
        try:
            return connectors_of(text)
        except json.JSONDecodeError as error:
            at = start + len(text[: error.pos].replace("'", "''"))
            raise self.error(f"connectors are no JSON: {error.msg}", at=at, exact=True) from error
        except (ValueError, RecursionError) as error:
            raise self.error(str(error), at=start - 1) from error

    def _text(self, wanted: str) -> tuple[str, int]:
        """Read the text in quotes, and where it begins."""
        found = self.peek() or ""
        if len(found) < len("''") or found[0] != "'":
            raise self.error(f"expected {wanted} in '', found {self.found()}")
        start = self.skip(self.at) + 1
        self.at = start - 1 + len(found)
        return found[1:-1].replace("''", "'"), start

    def refuse_foreign(self, spot: Spot) -> None:
        """Raise UserError if the next word is one of other systems."""
        said = tell_foreign(spot, self.peek() or "")
        if said is not None:
            raise self.error(said[0], hint=said[1])

    def is_next(self, word: str) -> bool:
        return (self.peek() or "").upper() == word

    def keyword(self, word: str, hint: str = "") -> None:
        if not self.is_next(word):
            raise self.error(f"expected {word}, found {self.found()}", hint=hint)
        self.word(word)
