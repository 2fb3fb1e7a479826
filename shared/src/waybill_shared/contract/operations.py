"""The id of an operation. It says what was asked of which pipeline, so that it can be answered
before anybody has worked on it. Knows nothing of how it ends."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.words import Action

WITHOUT_PLACES: Final = "without_places"
"""An option of a validation: whoever sent the manifest does not know lines and columns of it."""
COMPARED_WITH: Final = "compared_with"
"""An option of a validation: the uid of the pipeline that the manifest would change.

Of a maintenance or a request for logs: the uid of their pipeline.
"""
SINK: Final = "sink"
"""An option of a maintenance: the sink that owns the table."""
LINES: Final = "lines"
"""An option of a question for a log: how many lines of its end."""
DRY_RUN: Final = "dry_run"
"""An option of a maintenance: only say what would be done."""
NOTES: Final = "notes"
"""An option of an apply or a validation: a JSON list of warnings for its answer, which only ingress
can give, as it alone knows all pipelines."""
PATTERN = re.compile(rf"({'|'.join(Action)})\.([a-z][a-z0-9_-]{{0,62}})\.([0-9a-f]{{32}})")


def with_notes(notes: Iterable[str]) -> dict[str, str]:
    """Return the options that carry `notes`."""
    listed = list(notes)
    return {NOTES: json.dumps(listed)} if listed else {}


def notes_in(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the notes that a command carries."""
    return tuple(json.loads(options.get(NOTES, "[]")))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationId:
    action: Action
    pipeline: str
    nonce: str

    def __str__(self) -> str:
        return f"{self.action}.{self.pipeline}.{self.nonce}"


def read_operation(text: str) -> OperationId | None:
    """Parse `text` as the id of an operation; return None if no operation has such an id."""
    found = PATTERN.fullmatch(text)
    return (
        OperationId(action=Action(found[1]), pipeline=found[2], nonce=found[3]) if found else None
    )
