"""A file that was opened, and what opens one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from waybill_ingress.app.connector_ports import FetchFailed


class Passing(FetchFailed):
    """It may be otherwise in a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The file from `at` on, or from its beginning. `version` is None if nobody can say it."""

    read: Callable[[int], bytes]
    close: Callable[[], None]
    at: int
    size: int | None
    version: str | None
    encoding: str = "identity"


class FilePlace(Protocol):
    """Where one file lies."""

    def open(self, at: int) -> Opened:
        """Blocks. Raises FetchFailed."""
        ...


def encoding_of(url: str, header: str | None) -> str:
    """How it is packed: as its server says, or its name."""
    said = (header or "").strip().lower()
    if said not in ("", "identity"):
        return said
    name = urlsplit(url).path.lower()
    return "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else "identity"
