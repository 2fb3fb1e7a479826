"""Remembers values by key, up to a number of them."""

from typing import Final, TypeVar

T = TypeVar("T")
REMEMBERED_MAX: Final = 10_000


def remember(known: dict[str, T], key: str, value: T) -> None:
    """Keep the value, and forget the oldest ones."""
    known.pop(key, None)
    known[key] = value
    if len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]
