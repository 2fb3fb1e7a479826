"""Helpers for JSON text and values that the standard parser lacks."""

import re

SPACE = re.compile(r"[ \t\n\r]*")
OF_NUMBERS = re.compile(r"[-+.0-9eE]*", re.ASCII)


def deeper(value: object, depth: int) -> bool:
    """Return True if arrays and objects are nested deeper than `depth`."""
    level = [value]
    for _ in range(depth):
        level = [child for item in level for child in _children(item)]
    return any(isinstance(item, dict | list) for item in level)


def skip_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    assert found is not None
    return found.end()


def end_of_number(text: str, at: int) -> int:
    """Return the end of the characters that can be part of a number."""
    found = OF_NUMBERS.match(text, at)
    assert found is not None
    return found.end()


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
