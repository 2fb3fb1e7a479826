"""How large and how slow a file may be, and where it may lie."""

from dataclasses import dataclass
from pathlib import Path

from waybill_ingress.core.bodies.packed import UnpackLimits
from waybill_shared.contract.addresses import AllowedAddresses


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """`files`: the folder below which `file:` is read; None: nowhere. `time_s`: for one reading."""

    allowed: AllowedAddresses
    files: Path | None
    bytes_max: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Of a file as it is unpacked, and of a record of it."""

    unpacked: UnpackLimits
    record_bytes_max: int
