"""The id of an operation. It says what was asked of which pipeline, so that it can be answered
before anybody has worked on it. Knows nothing of how it ends."""

import re
from dataclasses import dataclass

from waybill_shared.contract.words import Action

PATTERN = re.compile(rf"({'|'.join(Action)})\.([a-z][a-z0-9_-]{{0,62}})\.([0-9a-f]{{32}})")


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
