"""How files of Iceberg tables are reached: with which code, options and keys, and in which folders.

PyIceberg makes the access to files of all that a catalog, a server and a table say, and follows
each word of it. Here the connection decides. A catalog of REST may add the options in
`OF_CATALOG`; the properties of a table, which anybody may have set, add nothing. Files are written
and deleted only below the folders of the connection, wherever a table says that they belong.
"""

import errno
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputFile, OutputFile, load_file_io
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import StagedTable, Table, TableProperties
from pyiceberg.typedef import EMPTY_DICT, Identifier

from waybill_shared.contract.errors import ContractError

CODE: Final = "py-io-impl"
FOLDERS: Final = "waybill.folders"
LOCAL_SCHEME: Final = "file"
SAME_STORE: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}
OF_CATALOG: Final = frozenset(
    {
        "s3.endpoint",
        "s3.force-virtual-addressing",
        "s3.region",
        "client.region",
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "adls.account-name",
        "adls.sas-token",
    }
)
"""What a REST catalog may say of the store: where a table's files are, and keys for them."""
OPTIONS: Final = OF_CATALOG | {"s3.connect-timeout", "s3.request-timeout", CODE, FOLDERS}
"""All that the access to files is made of."""
HINT: Final = "write the folder into `folders` of the connection, if tables may have files there"

Properties = Mapping[str, Any]
C = TypeVar("C", bound=Catalog)


class OutsideWarehouse(ContractError):
    """A file where the connection has no folder: a person moves the table, or names the folder."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.hint = hint

    def __str__(self) -> str:
        return str(self.args[0])


class WarehouseFileIO(PyArrowFileIO):
    """Files in the folders of a connection. Other ones in a store can only be read, and other ones
    of this machine not even that."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__({name: properties[name] for name in OPTIONS & properties.keys()})

    @property
    def folders(self) -> tuple[str, ...]:
        """Empty: any place in a store, as the catalog says."""
        return tuple(self.properties.get(FOLDERS, ()))

    def new_input(self, location: str) -> PyArrowFile:
        if _place(location)[0] == LOCAL_SCHEME:
            self.refuse_elsewhere(location)
        return super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        self.refuse_elsewhere(location)
        return super().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        if not self.has(path):  # as a store that refuses: who deletes goes on with other files
            raise PermissionError(errno.EPERM, "outside of the warehouse", path)
        super().delete(path)

    def has(self, location: str) -> bool:
        if not self.folders:
            return _place(location)[0] != LOCAL_SCHEME
        return any(_is_below(location, folder) for folder in self.folders)

    def refuse_elsewhere(self, location: str, what: str = "file", hint: str = HINT) -> None:
        """Raise OutsideWarehouse if the place is in none of the folders."""
        if self.has(location):
            return
        outside = f"outside of the warehouse, {', '.join(self.folders)}"
        where = outside if self.folders else "on this machine, where the connection has no folder"
        raise OutsideWarehouse(f"{what} {location} is {where}", hint)

    def only_in(self, folder: str) -> "WarehouseFileIO":
        """Return the access to one table's folder, if the connection says nothing of folders."""
        if self.folders or not self.has(folder):
            return self
        return WarehouseFileIO({**self.properties, FOLDERS: (folder,)})


def options(folders: Iterable[str]) -> dict[str, Any]:
    """Return what a catalog is opened with, so that all access to files is made here."""
    return {CODE: f"{__name__}.{WarehouseFileIO.__name__}", FOLDERS: tuple(folders)}


def in_warehouse(kind: type[C]) -> type[C]:
    """Return a catalog of this kind with tables that choose nothing of the access to files."""
    return type(kind.__name__, (_InWarehouse, kind), {"__module__": kind.__module__})


class _InWarehouse(Catalog):
    def load_table(self, identifier: str | Identifier) -> Table:
        table = super().load_table(identifier)  # type: ignore[safe-super]
        table.io = _only_in(table.io, table.location())
        return table

    def _load_file_io(
        self, properties: Properties = EMPTY_DICT, location: str | None = None
    ) -> FileIO:
        """Leave out `properties`, which are those of a table."""
        return load_file_io(self.properties, location)

    def _update_and_stage_table(self, *args: Any) -> StagedTable:  # noqa: ANN401
        """Write the metadata of a commit where the table is, whoever has changed it meanwhile."""
        staged: StagedTable = super()._update_and_stage_table(*args)  # type: ignore[misc]
        staged.io = _only_in(staged.io, staged.location())
        return staged


def refuse_folders_elsewhere(table: Table) -> None:
    """Raise OutsideWarehouse if a folder that the table names is there."""
    io = table.io
    if not isinstance(io, WarehouseFileIO):
        return
    io.refuse_elsewhere(table.location(), "its location")
    for key in (TableProperties.WRITE_DATA_PATH, TableProperties.WRITE_METADATA_PATH):
        if key in table.properties:
            alter = f"ALTER TABLE {'.'.join(table.name())} UNSET TBLPROPERTIES ('{key}')"
            io.refuse_elsewhere(table.properties[key], f"its {key}", f"{alter}; or {HINT}")


def _only_in(io: FileIO, folder: str) -> FileIO:
    return io.only_in(folder) if isinstance(io, WarehouseFileIO) else io


def _is_below(location: str, folder: str) -> bool:
    scheme, host, path = _place(location)
    its_scheme, its_host, its_path = _place(folder)
    if (scheme, host) != (its_scheme, its_host):
        return False
    if scheme == LOCAL_SCHEME:
        path, its_path = os.path.realpath(path), os.path.realpath(its_path)
    elif {".", ".."} & {*path.split("/")}:  # which some stores follow
        return False
    return path == its_path or path.startswith(its_path.rstrip("/") + "/")


def _place(location: str) -> tuple[str, str, str]:
    """Return scheme, host and path; of files of this machine the path is all."""
    scheme, host, path = PyArrowFileIO.parse_location(location)
    scheme = SAME_STORE.get(scheme.lower(), scheme.lower())
    return (scheme, "", path) if scheme == LOCAL_SCHEME else (scheme, host, path)
