"""Finds words of other systems where a manifest or its SQL has no such word. Looks only at what is
refused anyway, so it never refuses what could be read."""

import re
from typing import Final

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.foreign_words import FOREIGN_WORDS, Foreign, Spot

ROWS: Final[dict[tuple[Spot, str], tuple[Foreign, str]]] = {
    (spot, word.lower()): (row, word)
    for row in FOREIGN_WORDS
    for spot in row.spots
    for word in row.words
}
SKIPPED: Final = re.compile(r"(?:\s++|--[^\n]*+|/\*[\s\S]*?\*/)*+")
FIRST_WORDS: Final = re.compile(r"[A-Za-z]+(?:\s+[A-Za-z]+){0,5}")
FILLING: Final = frozenset({"or", "replace", "temporary", "temp", "local", "recursive", "external"})
"""Words in a statement that change nothing of what it is."""
STATEMENT_WORDS_MAX: Final = 3
QUOTED: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|--[^\n]*+|/\*[\s\S]*?\*/""", re.ASCII
)
TEMPLATES: Final = re.compile(r"\{[{%#]")


def find_foreign(spot: Spot, word: str) -> Foreign | None:
    """Return the row of a word at that spot; capitals do not count."""
    found = ROWS.get((spot, word.lower()))
    return None if found is None else found[0]


def tell_foreign(spot: Spot, word: str) -> tuple[str, str] | None:
    """Return a message and a hint for a word at that spot; None if it is no foreign word."""
    found = ROWS.get((spot, word.lower()))
    return None if found is None else found[0].tell(spot, found[1])


def find_statement(text: str, spot: Spot, at: int = 0) -> Problem | None:
    """Return what is wrong with what begins in `text` at that place."""
    skipped = SKIPPED.match(text, at)
    begin = skipped.end() if skipped else at
    found = FIRST_WORDS.match(text, begin)
    words = found[0].lower().split() if found else []
    words = [*words[:1], *(word for word in words[1:] if word not in FILLING)]
    for length in range(min(len(words), STATEMENT_WORDS_MAX), 0, -1):
        said = tell_foreign(spot, " ".join(words[:length]))
        if said is not None:
            return _problem(said, text, begin)
    return None


def find_template(text: str) -> Problem | None:
    """Return what is wrong at the first mark of a template outside of quotes and comments."""
    found = TEMPLATES.search(QUOTED.sub(_blank, text))
    said = None if found is None else tell_foreign(Spot.TEMPLATE, found[0])
    return None if said is None or found is None else _problem(said, text, found.start())


def _blank(quoted: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", quoted[0])


def _problem(said: tuple[str, str], text: str, at: int) -> Problem:
    message, hint = said
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return Problem(message=message, hint=hint, line=line, column=column)
