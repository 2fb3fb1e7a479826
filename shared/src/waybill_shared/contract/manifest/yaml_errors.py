"""Explains the errors of a YAML parser to the person who wrote the text.

An explanation says what is wrong, where, and how to fix it. The place is often not the one where
the parser gave up.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.document import Mark

Told = tuple[str, str, Mark]
"""A message, a hint, and a place."""
BEGINNINGS: Final = ("<scalar>", "{", "[", ":")  # of what belongs to the part after a comma
KEY_WITHOUT_SPACE: Final = re.compile(r"\s*(?:- )?[\w-]+:\S")
QUOTES_HINT: Final = "put a text with ': ' or ', ' in it in quotes"
UNKNOWN_HINT: Final = "put a text with special characters in it in quotes"
COLUMN_HINT: Final = "what belongs together begins in the same column"


def explain(error: MarkedYAMLError, text: str) -> Problem:
    said = error.problem or error.context or ""
    found = _mark(error.problem_mark) or (1, 1)
    opened = _mark(error.context_mark) or found
    for pattern, tell in WORDS.items():
        if (match := re.match(pattern, said)) is not None:
            message, hint, (line, column) = tell(match, text, opened, found)
            break
    else:
        message, hint, (line, column) = "what begins here cannot be read", UNKNOWN_HINT, found
    return Problem(message=f"not YAML: {message}", hint=hint, line=line, column=column)


def _mark(mark: StreamMark | None) -> Mark | None:
    return None if mark is None else (mark.line + 1, mark.column + 1)


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""


def _begin(text: str, number: int) -> Mark:
    line = _line(text, number)
    return number, len(line) - len(line.lstrip()) + 1


def _tab(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return "a tab stands where spaces must", "indent with spaces: YAML takes no tabs", found


def _strange_first(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return f"a text cannot begin with {match[1]}", "put the text in quotes", found


def _not_closed(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    close, got = match[1], match[2]
    if opened[0] == found[0] and got != "<stream end>":
        hint = f"put a comma between two parts; {QUOTES_HINT}"
        return f"a ',' or a '{close}' must stand here", hint, found
    if got in BEGINNINGS and _line(text, found[0]).lstrip().startswith(("'", '"', "{", "[")):
        at = _begin(text, found[0]) if got == ":" else found
        return "a ',' is missing before this", "put a comma between two parts", at
    return f"this {'{' if close == '}' else '['} is not closed", f"close it with {close}", opened


def _no_colon(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    line = _line(text, opened[0])
    if KEY_WITHOUT_SPACE.match(line):
        written = line.strip().replace(":", ": ", 1)
        return "a colon has no space behind it", f"write `{written}`", opened
    word = line.strip()
    hint = f"write `{word}:`" if re.fullmatch(r"\w+", word) else "a key ends with a colon"
    return "this line is no `key: value`", hint, opened


def _two_colons(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    """Explain a second colon: it is in this line, or the line continues the one before.

    Then that one is no key, or this one is indented too far.
    """
    if ": " in _line(text, found[0])[: found[1] - 1]:
        return "a second ': ' stands in this line", QUOTES_HINT, found
    before = found[0] - 1
    if KEY_WITHOUT_SPACE.match(_line(text, before)):
        return _no_colon(match, text, _begin(text, before), found)
    return "this line is indented too far", COLUMN_HINT, _begin(text, found[0])


def _behind_a_text(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    quote = _last_quoted(text, found)
    if quote is None or quote[1][0] != found[0]:
        return _indented_otherwise(match, text, opened, found)
    begin, end = quote
    hint = "close the quote in its line; a quote inside a text in quotes is written '' or \\\""
    return f"this quote ends in line {end[0]}, and more text stands behind it", hint, begin


def _indented_otherwise(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    message = f"the indentation of this line does not match what begins in line {opened[0]}"
    return message, COLUMN_HINT, found


def _closes_nothing(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return f"this {match[1]} closes nothing", "remove it, or put the text in quotes", found


def _open_quote(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return "this quote is not closed", "close it at the end of its text", opened


def _escape(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    said = f"\\{match[1]} means nothing in a text in double quotes"
    return said, "put the text in single quotes, or write the backslash twice", found


def _twice(match: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return f"the key {match[1]!r} stands twice", "remove one of the two", found


def _second_document(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return "a second document begins here", "put each manifest in a file of its own", found


def _list_in_a_line(_: re.Match[str], text: str, opened: Mark, found: Mark) -> Told:
    return "a list cannot begin here", "begin each item with `- ` in a line of its own", found


WORDS: Final[dict[str, Callable[[re.Match[str], str, Mark, Mark], Told]]] = {
    r"found character '\\t'": _tab,
    r"found character '(.)' that cannot start": _strange_first,
    r"expected ',' or '([}\]])', but got '?(.*?)'?$": _not_closed,
    r"could not find expected ':'": _no_colon,
    r"mapping values are not allowed": _two_colons,
    r"expected <block end>, but found '<scalar>'": _behind_a_text,
    r"expected <block end>, but found '([}\]])'": _closes_nothing,
    r"expected the node content, but found '([}\]])'": _closes_nothing,
    r"expected <block end>": _indented_otherwise,
    r"found unexpected end of stream": _open_quote,
    r"found unknown escape character '(.)'": _escape,
    r'found duplicate key "(.*?)" with value': _twice,
    r"but found another document": _second_document,
    r"sequence entries are not allowed": _list_in_a_line,
}


def _last_quoted(text: str, before: Mark) -> tuple[Mark, Mark] | None:
    """Return where the last quoted text before a place starts and ends."""
    last = None
    for token in _tokens(text):
        begin, end = _mark(token.start_mark), _mark(token.end_mark)
        assert begin is not None
        assert end is not None
        if begin >= before:
            break
        if getattr(token, "style", None) in ("'", '"'):
            last = (begin, end)
    return last


def _tokens(text: str) -> Iterator[Any]:
    """Yield tokens up to the first that cannot be read."""
    try:
        yield from YAML(typ="rt", pure=True).scan(text)
    except YAMLError:
        return
