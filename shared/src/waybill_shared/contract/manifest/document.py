"""A manifest as it was read, whatever its text is written in: a plain tree, and the way back from
each part of it to the text."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from waybill_shared.contract.errors import Problem

Path = tuple[str | int, ...]
"""A path to a part of the tree: keys, and the numbers of items in lists."""
Mark = tuple[int, int]
"""Line and column, from 1."""


class Places(Protocol):
    """The lines and columns of the parts of the tree. Each way to write a manifest has its own."""

    def find(self, path: Path) -> Mark:
        """Return the start of the deepest part of `path` that exists."""
        ...

    def find_inside(self, path: Path, line: int, column: int) -> Mark | None:
        """Return a place inside of the text at `path`; None if that text is not written line by
        line.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    tree: Any
    places: Places

    def place(self, problem: Problem, path: Path) -> Problem:
        """Return `problem` with the line and column of the deepest part of `path` that exists.

        If it already has a line and a column, they count inside of the text at `path`.
        """
        mark, message = self.places.find(path), problem.message
        if problem.line is not None and problem.column is not None:
            inside = self.places.find_inside(path, problem.line, problem.column)
            if inside is None:
                message += f" (line {problem.line}, column {problem.column} of that text)"
            mark = inside or mark
        line, column = mark
        dotted = ".".join(map(str, path))
        return replace(problem, message=message, line=line, column=column, path=dotted)
