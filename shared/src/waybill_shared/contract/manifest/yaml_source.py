"""YAML that people write, read with care: a size cap, no aliases, tags or merge keys, and the
line and column of every value. Knows nothing of what the document means."""

from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent
from ruamel.yaml.reader import ReaderError

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.document import Document, Mark, Path
from waybill_shared.contract.manifest.yaml_errors import explain

SIZE_BYTES_MAX = 64 * 1024  # checked before parsing: a small alias bomb expands without bound
DEPTH_MAX = 32


def read_yaml(text: str) -> Document:
    if len(text.encode()) > SIZE_BYTES_MAX:
        raise UserError([Problem(message=f"the document is larger than {SIZE_BYTES_MAX} bytes")])
    try:
        _refuse_expansion(text)
        tree = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        raise UserError([explain(error, text)]) from error
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        message = f"not YAML: the character U+{error.character:04X} is not taken"
        raise UserError([Problem(message=message, line=line, column=column)]) from error
    except YAMLError as error:
        raise UserError([Problem(message=f"not YAML: {error}")]) from error
    except TypeError as error:  # all that the parser says of {a: 1}: 2
        hint = "put a text with {, [ or : in it in quotes"
        message = "a key is itself a mapping or a list"
        raise UserError([Problem(message=message, hint=hint)]) from error
    if not isinstance(tree, dict):
        raise UserError([_no_mapping(tree)])
    return Document(tree=tree, places=YamlPlaces(tree=tree, lines=tuple(text.splitlines())))


def _no_mapping(tree: object) -> Problem:
    message = "the document is empty" if tree is None else "the document has no keys with values"
    return Problem(message=message, hint="a manifest begins with `version: 1`", line=1, column=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlPlaces:
    """Fulfils `Places` by the marks that the parser leaves on mappings and lists."""

    tree: Any
    lines: tuple[str, ...] = ()

    def find(self, path: Path) -> Mark:
        _, (line, column) = self._walk(path)
        return line + 1, column + 1

    def find_inside(self, path: Path, line: int, column: int) -> Mark | None:
        text, mark = self._walk(path)
        if not isinstance(text, str):
            return None
        below = self.lines[mark[0]][mark[1]] in "|>"
        at, wanted = mark[0] + below + line - 1, text.splitlines()[line - 1]
        written = self.lines[at] if at < len(self.lines) else ""
        begin = written.find(wanted, 0 if below or line > 1 else mark[1])
        return None if begin < 0 else (at + 1, begin + column)

    def _walk(self, path: Path) -> tuple[object, Mark]:
        """The deepest part of `path` that is here, and its line and column, from 0."""
        at, mark = self.tree, (0, 0)
        for part in path:
            lines = getattr(at, "lc", None)
            if isinstance(at, dict) and part in at and lines is not None:
                mark = lines.key(part) if isinstance(at[part], dict | list) else lines.value(part)
            elif isinstance(at, list) and isinstance(part, int) and part < len(at):
                mark = lines.item(part) if lines is not None else mark
            else:
                break
            at = at[part]
        return at, mark


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
