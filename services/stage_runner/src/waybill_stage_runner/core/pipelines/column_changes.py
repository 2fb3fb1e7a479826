"""Texts about columns that a changed manifest adds, changes or removes."""

from collections.abc import Iterator, Mapping
from typing import Final

OPENING: Final = "<("
CLOSING: Final = ">)"
QUOTE: Final = "`"


def column_texts(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, type_ in now.items():
        if name not in was:
            yield f"column {name} added ({type_})"
        elif was[name] != type_:
            yield f"column {name} is {type_}, was {was[name]}"
    yield from (f"column {name} removed" for name in was if name not in now)


def split_columns(text: str) -> dict[str, str]:
    """Parse "`a` int, `b` struct<x:int,y:int>" to the type of each column name."""
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == QUOTE
        depth += 0 if quoted else (char in OPENING) - (char in CLOSING)
        if char == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    named = (part.strip().rpartition(f"{QUOTE} ") for part in parts if part.strip())
    return {name.removeprefix(QUOTE): type_ for name, _, type_ in named}
