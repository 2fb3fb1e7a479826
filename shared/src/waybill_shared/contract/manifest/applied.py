"""A manifest as it was applied. `reading` makes it once, where a text comes in; commands, records,
runs and checks carry it, so that nobody else parses."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from pydantic import ValidationError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.document import Document, Path, paths_of
from waybill_shared.contract.manifest.model import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a person should know of a manifest that is accepted."""

    severity: Literal["warning"]
    message: str


@dataclass(frozen=True, kw_only=True)
class AppliedManifest:
    native: str
    """The tree of a native manifest, as JSON with sorted keys. Changes are judged by it."""
    source: str
    """The text as it was sent."""
    dialect: Literal["native"] = "native"
    """What the text is written in."""
    places: tuple[int, ...] = ()
    """Line and column in the source of each part of the tree, in the order of `paths_of`. Empty if
    the person who sent the manifest does not know this text."""
    notes: tuple[Note, ...] = ()

    def __hash__(self) -> int:
        return hash(self.native)

    @cached_property
    def model(self) -> Manifest:
        """The manifest as a value. Raise UserError if it is not valid in this version any more."""
        try:
            return Manifest.model_validate_json(self.native)
        except ValidationError as error:
            message = "the manifest is not valid in this version any more"
            raise UserError([Problem(message=message, hint="apply it again")]) from error

    @property
    def size(self) -> int:
        """The bytes that it takes in a message, without its places and notes."""
        return len(self.native) + len(self.source.encode())

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(note.message for note in self.notes if note.severity == "warning")

    def with_warnings(self, messages: Iterable[str]) -> "AppliedManifest":
        notes = (Note(severity="warning", message=each) for each in messages)
        return replace(self, notes=(*self.notes, *notes))

    def without_places(self) -> "AppliedManifest":
        return replace(self, places=())

    def place(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Add the line and column to problems that have a dotted path in the manifest.

        An item of a list may have its name in the path; in the result it has its number.
        """
        document = self._document
        return tuple(
            document.place(each, _count(document.tree, each.path.split("."))) if each.path else each
            for each in problems
        )

    @cached_property
    def _document(self) -> Document:
        tree = json.loads(self.native)
        marks = zip(self.places[::2], self.places[1::2], strict=True)
        return Document(
            tree=tree,
            source=self.source,
            marks=dict(zip(paths_of(tree), marks, strict=True)) if self.places else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierManifest:
    """An earlier manifest, the last generation that it was applied as, and its end."""

    generation: int
    manifest: AppliedManifest
    until: int


def _count(at: object, parts: Sequence[str]) -> Path:
    path: list[str | int] = []
    for part in parts:
        number: str | int = part
        if isinstance(at, list):
            names = [str(each.get("name")) for each in at if isinstance(each, dict)]
            number = names.index(part) if part in names else int(part) if part.isdigit() else part
        path.append(number)
        at = _inside(at, number)
    return tuple(path)


def _inside(at: object, part: str | int) -> object:
    if isinstance(at, dict):
        return at.get(part)
    if isinstance(at, list) and isinstance(part, int) and part < len(at):
        return at[part]
    return None
