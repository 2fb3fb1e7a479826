"""What is said of the columns that a table gets, whatever its kind."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


def new_names(added: Mapping[str, T], gone: Mapping[str, T]) -> dict[str, str]:
    """Find which added column may be one of the table's under a new name.

    `gone`: what the query no longer gives. Nobody can tell the two apart; people can.
    """
    if len(gone) != 1:
        return {}
    ((old, kind),) = gone.items()
    return {name: old for name, type_ in added.items() if type_ == kind}


def said_of_new(added: Mapping[str, object], renamed: Mapping[str, str]) -> Iterator[str]:
    """Name each column. `renamed`: the statements that would make it one that is there."""
    for name, kind in added.items():
        statement = renamed.get(name)
        hint = f"; if it is another under a new name, first run {statement}"
        yield f"gets a column {name}, {kind}{hint if statement else ''}"
