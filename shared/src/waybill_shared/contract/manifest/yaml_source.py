"""YAML that people write, read with care: a size cap, no aliases, tags or merge keys, and the
line and column of every value. Knows nothing of what the document means."""

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.parser import RoundTripParser
from ruamel.yaml.reader import ReaderError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.document import Document, Mark, Path
from waybill_shared.contract.manifest.foreign import find_statement, find_template
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.manifest.yaml_errors import explain

SIZE_BYTES_MAX = 64 * 1024  # checked before parsing: a small alias bomb expands without bound
DEPTH_MAX = 32
DIGITS_MAX = 18
SCALARS = {
    re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt \t]|$)", re.ASCII): "a date",
    re.compile(rf"[-+]?[\d_]{{{DIGITS_MAX + 1},}}$", re.ASCII): "a very long number",
}
EXPANSION = "anchors, aliases, merge keys and tags are not supported: write the value out", ""
COMPLEX_KEY = "a key is itself a mapping or a list", "put a text with {, [ or : in it in quotes"
NO_CHARACTER = re.compile(r"\\U(?!000[\dA-Fa-f]|0010)[\dA-Fa-f]{8}")


def read_yaml(text: str) -> Document:
    if len(text.encode(errors="surrogatepass")) > SIZE_BYTES_MAX:
        raise UserError([Problem(message=f"the document is larger than {SIZE_BYTES_MAX} bytes")])
    try:
        tree = _read_tree(text)
    except UserError as error:
        raise UserError([_of_another_system(text, *error.problems)]) from error
    return Document(tree=tree, marks=dict(_marks(tree)), source=text)


def _of_another_system(text: str, problem: Problem) -> Problem:
    """Return what the text is instead, if it begins like no manifest or is a template there."""
    template = find_template(text)
    if (statement := find_statement(text, Spot.FILE)) is not None:
        return template or statement
    return template if template is not None and template.line == problem.line else problem


def _read_tree(text: str) -> dict[Any, Any]:
    """Parse the text as a mapping. Raise UserError with one problem if it is none, or too large."""
    try:
        yaml = YAML(typ="rt", pure=True)
        yaml.Parser = CarefulParser
        tree = yaml.load(text)
    except MarkedYAMLError as error:
        raise UserError([explain(error, text)]) from error
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        message = f"not YAML: the character U+{error.character:04X} is not allowed"
        raise UserError([Problem(message=message, line=line, column=column)]) from error
    except (ValueError, OverflowError) as error:  # as the parser has no place for it
        raise UserError([_no_character(text)]) from error
    if not isinstance(tree, dict):
        raise UserError([_no_mapping(tree)])
    return tree


def _no_mapping(tree: object) -> Problem:
    message = "the document is empty" if tree is None else "the document has no keys with values"
    return Problem(message=message, hint="a manifest begins with `version: 1`", line=1, column=1)


def _marks(at: object, path: Path = (), mark: Mark = (1, 1)) -> Iterator[tuple[Path, Mark]]:
    """Yield each path and its place, by the marks that the parser leaves on mappings and lists."""
    yield path, mark
    if isinstance(at, CommentedMap):
        for key, value in at.items():
            place = at.lc.key(key) if isinstance(value, dict | list) else at.lc.value(key)
            yield from _marks(value, (*path, key), (place[0] + 1, place[1] + 1))
    elif isinstance(at, CommentedSeq):
        for number, item in enumerate(at):
            line, column = at.lc.item(number)
            yield from _marks(item, (*path, number), (line + 1, column + 1))


class CarefulParser(RoundTripParser):
    """Refuses what would expand without limit, what no manifest needs, and what Python cannot
    represent, before anything is made of it.
    """

    def __init__(self, loader: YAML) -> None:
        super().__init__(loader)
        self._open_nodes: list[int | None] = []  # of a mapping: its keys and values so far

    def get_event(self) -> events.Event:
        """Return the next event. Raise UserError if it is one that no manifest may have."""
        event: events.Event = super().get_event()
        if isinstance(event, events.MappingEndEvent | events.SequenceEndEvent):
            self._open_nodes.pop()
        if isinstance(event, events.NodeEvent):
            self._enter(event)
        return event

    def _enter(self, event: events.NodeEvent) -> None:
        nodes, refusal = self._open_nodes, _refuse_event(event)
        if nodes and (filled := nodes[-1]) is not None:
            nodes[-1] = filled + 1
            if filled % 2 == 0 and not isinstance(event, events.ScalarEvent):
                refusal = refusal or COMPLEX_KEY
        if isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            nodes.append(0 if isinstance(event, events.MappingStartEvent) else None)
        if len(nodes) > DEPTH_MAX:
            refusal = f"the document nests deeper than {DEPTH_MAX}", ""
        if refusal is not None:
            message, hint = refusal
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            raise UserError([Problem(message=message, hint=hint, line=line, column=column)])


def _refuse_event(event: events.NodeEvent) -> tuple[str, str] | None:
    """Return what is wrong with a node and a hint; None if nothing is."""
    tagged = getattr(event, "tag", None) is not None
    if isinstance(event, events.AliasEvent) or event.anchor is not None or tagged:
        return EXPANSION
    if not isinstance(event, events.ScalarEvent) or event.style is not None:
        return None
    if event.value == "<<":
        return EXPANSION
    for form, name in SCALARS.items():
        if form.match(event.value):
            return f"{name} cannot stand here", "if it is meant as a text, put it in quotes"
    return None


def _no_character(text: str) -> Problem:
    found = NO_CHARACTER.search(text)
    if found is None:
        return Problem(message="not YAML: a value cannot be read")
    line, column = (
        text.count("\n", 0, found.start()) + 1,
        found.start() - text.rfind("\n", 0, found.start()),
    )
    hint = "the last character is \\U0010FFFF"
    return Problem(
        message=f"not YAML: {found[0]} is no character", hint=hint, line=line, column=column
    )
