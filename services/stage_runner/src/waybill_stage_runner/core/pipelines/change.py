"""One difference between two manifests, in words."""

from dataclasses import dataclass
from typing import Literal

Effect = Literal["", "writes_again", "loses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference. `effect` is empty if rows and tokens stay as before."""

    kind: str
    path: str
    message: str
    effect: Effect = ""
