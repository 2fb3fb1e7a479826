"""What the store of a table reports of its files: whether they exist, and how old they are.

Ages are measured by the store's own clock, never by that of the host. If the clock of a host
differs, it does no maintenance.
"""

import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.process.clock import Clock
from waybill_spark.sinks.iceberg.writing import remove

CLOCKS_DIFFER_MS: Final = 120_000  # more than hosts with a time service ever do
AT_ONCE: Final = 8  # files that are asked for; a store answers each in some milliseconds
UNITS: Final = (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000))


class MaintenanceRefused(UserError):
    """Nothing was done to the table, and a person must see to it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__([Problem(message=message, hint=hint)])


def store_now_ms(table: Table, clock: Clock) -> int:
    """Return the time of the table's store: the one that a file gets which is written now.

    Raises MaintenanceRefused if the host's clock differs.
    """
    path = f"{table.location()}/metadata/waybill-clock-{uuid.uuid4()}"
    before = clock.now_ms()
    with table.io.new_output(path).create() as stream:
        stream.write(b"")
    after = clock.now_ms()
    try:
        now = read_modified_ms(table.io, [path]).get(path)
    finally:
        remove(table.io, [path])
    if now is None:
        what = f"the store of {table.location()} does not say when a file was written"
        raise MaintenanceRefused(what, "keep the table in order with another program")
    _refuse_other_clock(max(before - now, now - after), is_slow=now > after)
    return now


def read_modified_ms(io: FileIO, paths: Iterable[str]) -> Mapping[str, int]:
    """Return when the store got each file, as far as it is there."""
    return {
        path: int(info.mtime.timestamp() * 1000)
        for path, info in _look(io, [*paths]).items()
        if info.is_file and info.mtime is not None
    }


def find_missing(io: FileIO, paths: Iterable[str]) -> list[str]:
    return [path for path, info in _look(io, [*paths]).items() if not info.is_file]


def files_from_before(table: Table, older_than_ms: int) -> tuple[fs.FileSystem, list[fs.FileInfo]]:
    """Return what is in the folder of the table for longer."""
    before = datetime.fromtimestamp(older_than_ms / 1000, UTC)
    system, path = _in_store(table.io, table.location())
    listed = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return system, [
        info for info in listed if info.is_file and info.mtime is not None and info.mtime < before
    ]


def _refuse_other_clock(differs_ms: int, *, is_slow: bool) -> None:
    if differs_ms <= CLOCKS_DIFFER_MS:
        return
    unit, length = next(each for each in UNITS if differs_ms >= 2 * each[1] or each is UNITS[-1])
    way = "behind" if is_slow else "ahead of"
    difference = f"{round(differs_ms / length)} {unit} {way} that of the store"
    message = f"the clock of the driver's host is {difference}: nothing was done"
    raise MaintenanceRefused(message, "set the clock of the host, or that of the store")


def _look(io: FileIO, paths: list[str]) -> dict[str, fs.FileInfo]:
    def look(path: str) -> fs.FileInfo:
        system, place = _in_store(io, path)
        return system.get_file_info(place)

    if len(paths) < AT_ONCE:
        return {path: look(path) for path in paths}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(paths, pool.map(look, paths), strict=True))


def _in_store(io: FileIO, location: str) -> tuple[fs.FileSystem, str]:
    if not isinstance(io, PyArrowFileIO):
        hint = "let PyArrow read and write the files of the table"
        raise MaintenanceRefused(f"files of {type(io).__name__} cannot be looked at", hint)
    scheme, netloc, path = PyArrowFileIO.parse_location(location)
    return io.fs_by_scheme(scheme, netloc), path
