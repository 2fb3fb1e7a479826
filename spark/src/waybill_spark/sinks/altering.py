"""What is said of the columns that a table gets, whatever its kind."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


def new_names(added: Mapping[str, T], removed: Mapping[str, T]) -> dict[str, str]:
    """Return for added columns the column of the table that they may replace under a new name.

    `removed`: columns that the query no longer has. Only a person knows if one has a new name.
    """
    if len(removed) != 1:
        return {}
    ((old, kind),) = removed.items()
    return {name: old for name, type_ in added.items() if type_ == kind}


def describe_new(added: Mapping[str, object], renamed: Mapping[str, str]) -> Iterator[str]:
    """Name each column. `renamed`: the statements that would make it one that is there."""
    for name, kind in added.items():
        statement = renamed.get(name)
        hint = f"; if it is another under a new name, first run {statement}"
        yield f"gets a column {name}, {kind}{hint if statement else ''}"
