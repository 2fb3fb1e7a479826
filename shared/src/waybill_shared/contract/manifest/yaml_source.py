"""YAML that people write, read with care: a size cap, no aliases, tags or merge keys, and the
line and column of every value. Knows nothing of what the document means."""

from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent
from ruamel.yaml.reader import ReaderError

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem

SIZE_BYTES_MAX = 64 * 1024  # checked before parsing: a small alias bomb expands without bound
DEPTH_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlSource:
    """A parsed document that can still say where each part of it stands."""

    value: Any
    lines: tuple[str, ...] = ()

    @staticmethod
    def read(text: str) -> "YamlSource":
        if len(text.encode()) > SIZE_BYTES_MAX:
            raise UserError(
                [Problem(message=f"the document is larger than {SIZE_BYTES_MAX} bytes")]
            )
        try:
            _refuse_expansion(text)
            value = YAML(typ="rt", pure=True).load(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
            message = f"not YAML: {error.problem or error.context}"
            hint = "indent with spaces: YAML takes no tabs" if "'\\t'" in message else ""
            problem = Problem(message=message, hint=hint, line=line, column=column)
            raise UserError([problem]) from error
        except ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, error.position - before.rfind("\n")
            message = f"not YAML: the character U+{error.character:04X} is not taken"
            problem = Problem(message=message, line=line, column=column)
            raise UserError([problem]) from error
        except YAMLError as error:
            raise UserError([Problem(message=f"not YAML: {error}")]) from error
        except TypeError as error:  # all that the parser says of {a: 1}: 2
            hint = "put a text with {, [ or : in it in quotes"
            message = "a key is itself a mapping or a list"
            raise UserError([Problem(message=message, hint=hint)]) from error
        if not isinstance(value, dict):
            raise UserError([Problem(message="the document is not a mapping of keys to values")])
        return YamlSource(value=value, lines=tuple(text.splitlines()))

    def place(self, problem: Problem, path: tuple[str | int, ...]) -> Problem:
        """`problem` with the line and column of the deepest part of `path` that stands here.

        One that has a line and a column means the text at `path`, and these count in it.
        """
        at, mark = self.value, (0, 0)
        for part in path:
            lines = getattr(at, "lc", None)
            if isinstance(at, dict) and part in at and lines is not None:
                mark = lines.key(part) if isinstance(at[part], dict | list) else lines.value(part)
            elif isinstance(at, list) and isinstance(part, int) and part < len(at):
                mark = lines.item(part) if lines is not None else mark
            else:
                break
            at = at[part]
        dotted = ".".join(str(part) for part in path)
        message = problem.message
        if problem.line is not None and problem.column is not None and isinstance(at, str):
            inside = self._inside(at, mark, problem.line - 1)
            if inside is not None:
                mark = inside[0], inside[1] + problem.column - 1
            else:
                message += f" (line {problem.line}, column {problem.column} of that text)"
        return replace(problem, message=message, line=mark[0] + 1, column=mark[1] + 1, path=dotted)

    def _inside(self, text: str, mark: tuple[int, int], number: int) -> tuple[int, int] | None:
        """Where that line of a text begins here; None if it is written otherwise, as with `>`."""
        below = self.lines[mark[0]][mark[1]] in "|>"
        line, wanted = mark[0] + below + number, text.splitlines()[number]
        written = self.lines[line] if line < len(self.lines) else ""
        column = written.find(wanted, 0 if below or number else mark[1])
        return None if column < 0 else (line, column)


def _refuse_expansion(text: str) -> None:
    depth = 0
    for event in YAML(typ="rt", pure=True).parse(text):
        anchored = getattr(event, "anchor", None) is not None
        tagged = isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent) and (
            event.tag is not None
        )
        merging = isinstance(event, ScalarEvent) and event.value == "<<"
        if isinstance(event, AliasEvent) or anchored or tagged or merging:
            mark = event.start_mark
            message = "anchors, aliases, merge keys and tags are not taken: write the value out"
            raise UserError([Problem(message=message, line=mark.line + 1, column=mark.column + 1)])
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            depth += 1
        elif type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
        if depth > DEPTH_MAX:
            raise UserError([Problem(message=f"the document nests deeper than {DEPTH_MAX}")])
