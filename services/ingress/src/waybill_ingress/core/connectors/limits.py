"""Limits of a file: how large and how slow it may be, and where it may be."""

from dataclasses import dataclass
from pathlib import Path

from waybill_ingress.core.bodies.packed import UnpackLimits
from waybill_shared.contract.addresses import AllowedAddresses


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of fetching. `files`: the folder for `file:`; None: no folder. `time_s`: for one
    reading.
    """

    allowed: AllowedAddresses
    files: Path | None
    bytes_max: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Limits of a file when it is unpacked, and of one of its records."""

    unpacked: UnpackLimits
    record_bytes_max: int
