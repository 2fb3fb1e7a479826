"""Checks that a table's files may be written: it writes a file and deletes it."""

import errno
import uuid
from pathlib import Path
from typing import Final

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from sqlalchemy.exc import ProgrammingError

from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.iceberg.file_access import WarehouseFileIO
from waybill_spark.sinks.iceberg.tables import IcebergTarget, is_no_catalog_yet, problem
from waybill_spark.sinks.iceberg.writing import remove

FILE: Final = "file://"
FORBIDDEN: Final = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EEXIST,  # a file is where the folder would be
    errno.ENOENT,  # as /proc says it
}
"""Errors of a folder for which waiting does not help."""


def refuse_no_rights(catalog: Catalog, table: Table | None, target: IcebergTarget) -> None:
    place, io = _place(catalog, table, target.name)
    if place is None:
        return
    path = f"{_nearest(place)}/waybill-{uuid.uuid4()}.parquet"
    if isinstance(io, WarehouseFileIO):
        io.refuse_elsewhere(place, "the place of its files")
        io = PyArrowFileIO(io.properties)  # the nearest folder may be above the warehouse
    try:
        with io.new_output(path).create() as stream:
            stream.write(b"")
    except OSError as error:
        if error.errno not in FORBIDDEN:
            raise
        what = f"its files cannot be written to {place}: {error}"
        hint = "give the user of the stage-runner the right to write there, or name another place"
        raise UserError([problem(target, what, hint)]) from error
    remove(io, [path])


def _place(catalog: Catalog, table: Table | None, name: str) -> tuple[str | None, FileIO]:
    """Return the folder of the files and the access to it.

    None: only the catalog knows where it would make the table, and with which keys.
    """
    if table is not None:
        return table.location_provider().data_path, table.io
    place = _default(catalog, name) if isinstance(catalog, MetastoreCatalog) else None
    return place, load_file_io(catalog.properties, place)


def _default(catalog: Catalog, name: str) -> str | None:
    own = None
    try:
        own = catalog.load_namespace_properties(name.rsplit(".", 1)[0]).get("location")
    except NoSuchNamespaceError:
        pass
    except ProgrammingError as error:
        if not is_no_catalog_yet(error):
            raise
    return own or catalog.properties.get("warehouse")


def _nearest(place: str) -> str:
    """Return the nearest local folder that exists, because a check creates nothing."""
    if not place.startswith((FILE, "/")):
        return place
    folder = Path(place.removeprefix(FILE))
    while not folder.exists():
        folder = folder.parent
    return f"{FILE}{folder}"
