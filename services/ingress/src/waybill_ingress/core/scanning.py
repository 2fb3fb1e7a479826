"""Small looks at JSON text and values that the standard parser has no word for."""

import re

SPACE = re.compile(r"[ \t\n\r]*")
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def deeper(value: object, depth: int) -> bool:
    """Whether arrays and objects nest deeper than `depth`."""
    level = [value]
    for _ in range(depth):
        level = [child for item in level for child in _children(item)]
    return any(isinstance(item, dict | list) for item in level)


def skip_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    assert found is not None
    return found.end()


def end_of_nest(text: str, at: int) -> int | None:
    """Where the array or object at `at` ends, however deep it nests; None if nowhere."""
    depth = 0
    for found in BRACKETS.finditer(text, at):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
            if depth == 0:
                return found.end()
    return None


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
