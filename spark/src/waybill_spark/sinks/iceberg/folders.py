"""Which folders a table may keep files in, and whether another table of its catalog shares one."""

import os
import posixpath
from collections.abc import Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from waybill_spark.sinks.iceberg.ages import MaintenanceRefused


def place_of(location: str) -> str:
    """Return it in one spelling, as the file system has it."""
    _, _, path = PyArrowFileIO.parse_location(location)
    return spell(path, is_local=is_local(location))


def is_local(location: str) -> bool:
    return str(PyArrowFileIO.parse_location(location)[0]) == "file"


def spell(path: str, *, is_local: bool) -> str:
    return os.path.realpath(path) if is_local else posixpath.normpath(path)


def refuse_other_tables(table: Table) -> None:
    """Raise MaintenanceRefused if files of another table may be in the folder of this one.

    A table that was renamed keeps its folder, another may be made in it, and properties name more.
    """
    own = place_of(table.location())
    for namespace in _namespaces(table.catalog):
        for name in table.catalog.list_tables(namespace):
            if name == table.name():
                continue
            try:
                other = table.catalog.load_table(name)
            except NoSuchTableError:
                continue  # of another kind, or deleted meanwhile
            _refuse_shared(own, other)


def _refuse_shared(own: str, other: Table) -> None:
    files = {place_of(each) for each in _file_folders(other)}
    inside = [each for each in (place_of(other.location()), *files) if _is_in(each, own)]
    around = [each for each in files if _is_in(own, each)]
    for folder in (*inside, *around)[:1]:
        name = ".".join(other.name())
        message = (
            f"table {name} has files in {folder}, and this one in {own}: nothing was done, as"
            " files of another table may be there"
        )
        hint = f"give {name} a folder of its own, or take removeOrphans out of the manifest"
        raise MaintenanceRefused(message, hint)


def _file_folders(table: Table) -> Iterator[str]:
    """Iterate over those that new files go to, or that the newest metadata went to."""
    yield f"{table.location()}/data"
    yield f"{table.location()}/metadata"
    yield table.metadata_location.rpartition("/")[0]
    for key, value in table.properties.items():
        if key.startswith("write.") and key.endswith(".path") and value:
            yield value


def _is_in(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(f"{other.rstrip('/')}/")


def _namespaces(catalog: Catalog, parent: Identifier = ()) -> Iterator[Identifier]:
    """Iterate over them, also those that are in others."""
    try:
        found = catalog.list_namespaces(parent)
    except NoSuchNamespaceError:  # it was deleted, or the catalog has none in others
        return
    for each in found:
        yield each
        yield from _namespaces(catalog, each)
