"""A manifest as it was read, whatever its text is written in: a plain tree, and the line and column
of each of its parts in that text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from waybill_shared.contract.errors import Problem

Path = tuple[str | int, ...]
"""A path to a part of the tree: keys, and the numbers of items in lists."""
Mark = tuple[int, int]
"""Line and column, from 1."""


def paths_of(tree: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each part of a tree, the whole first and keys in alphabetical order."""
    yield path
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from paths_of(tree[key], (*path, key))
    elif isinstance(tree, list):
        for number, item in enumerate(tree):
            yield from paths_of(item, (*path, number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    tree: Any
    marks: Mapping[Path, Mark]
    """Empty if the places of its parts are not known."""
    source: str

    def place(self, problem: Problem, path: Path) -> Problem:
        """Return `problem` with the line and column of the deepest part of `path` that exists.

        If it already has a line and a column, they count inside of the text at `path`.
        """
        known = next((path[:n] for n in range(len(path), -1, -1) if path[:n] in self.marks), None)
        mark = (None, None) if known is None else self.marks[known]
        message = problem.message
        if problem.line is not None and problem.column is not None:
            inside = self._find_inside(known, problem.line, problem.column)
            if inside is None:
                message += f" (line {problem.line}, column {problem.column} of that text)"
            mark = inside or mark
        line, column = mark
        dotted = ".".join(map(str, path))
        return replace(problem, message=message, line=line, column=column, path=dotted)

    def _find_inside(self, path: Path | None, line: int, column: int) -> Mark | None:
        """Return a place inside of the text at `path`; None if that text is not written line by
        line in the source.
        """
        text = None if path is None else self._at(path)
        if path is None or not isinstance(text, str):
            return None
        within = text.split("\n")  # what ends in a line break has an empty line after it
        if line > len(within):
            return None
        lines, (first, start) = self.source.splitlines(), self.marks[path]
        below = lines[first - 1][start - 1] in "|>"  # a text of YAML that begins on the next line
        at, wanted = first + below + line - 2, within[line - 1]
        written = lines[at] if at < len(lines) else ""
        found = written.find(wanted, 0 if below or line > 1 else start - 1)
        return None if found < 0 else (at + 1, found + column)

    def _at(self, path: Path) -> object:
        at = self.tree
        for part in path:
            at = at[part]
        return at
