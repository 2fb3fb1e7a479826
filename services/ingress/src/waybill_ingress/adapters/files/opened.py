"""An opened file, and the port that opens one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from waybill_ingress.app.connector_ports import FetchFailed


class Passing(FetchFailed):
    """A failure that may be over in a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The file from `at` on, or from its start. `version` is None if it is not known."""

    read: Callable[[int], bytes]
    close: Callable[[], None]
    at: int
    size: int | None
    version: str | None
    encoding: str = "identity"


class FilePlace(Protocol):
    """The location of one file."""

    def open(self, at: int) -> Opened:
        """Open the file. Blocks. Raises FetchFailed."""


def encoding_of(url: str, header: str | None) -> str:
    """Return how the file is packed: as its server says, or as its name ends."""
    said = (header or "").strip().lower()
    if said not in ("", "identity"):
        return said
    name = urlsplit(url).path.lower()
    return "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else "identity"
