"""A manifest as it was read, whatever its text is written in: a plain tree, and the way back from
each part of it to the text."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from waybill_shared.contract.events import Problem

Path = tuple[str | int, ...]
"""To a part of the tree: keys, and numbers of what stands in lists."""
Mark = tuple[int, int]
"""Line and column, from 1."""


class Places(Protocol):
    """Where the parts of the tree stand in the text. Each way to write a manifest has its own."""

    def find(self, path: Path) -> Mark:
        """Where the deepest part of `path` begins that is there."""
        ...

    def find_inside(self, path: Path, line: int, column: int) -> Mark | None:
        """A place in the text at `path`; None if that text is not written line by line."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    tree: Any
    places: Places

    def place(self, problem: Problem, path: Path) -> Problem:
        """`problem` with the line and column of the deepest part of `path` that is there.

        One that has a line and a column means the text at `path`, and these count in it.
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
