"""Opens catalogs of Iceberg tables: the local one, JDBC on SQLite, which PyIceberg and Spark open
alike, and those of connections."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from sqlalchemy import URL

from waybill_shared.connections import Connections, read_connections
from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import LOCAL
from waybill_shared.databases import CONNECT_TIMEOUT_S, SILENCE_S, PostgresConnection
from waybill_shared.object_stores import S3Connection
from waybill_spark.sinks.iceberg.connection import (
    IcebergConnection,
    Reached,
    as_location,
    translate_errors,
)
from waybill_spark.sinks.iceberg.file_access import in_warehouse, options

DATABASE: Final = "catalog.db"
Properties = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenCatalog:
    tables: Catalog
    place: str
    """Where a person looks when it does not answer."""

    def identity(self, name: str, table: Table | None) -> str:
        """Return the identity of a table, or of the one that would be made there, whatever
        connection led here.
        """
        if table is not None:
            return str(table.metadata.table_uuid)
        own = self.tables.name if isinstance(self.tables, SqlCatalog) else ""
        return f"{self.place} {own} {self.tables.properties.get('warehouse', '')} {name}"


def open_catalog(
    connection: str, places: SinkPlaces, *, what: str, make: bool = True
) -> OpenCatalog:
    """Open a catalog. `what`: the user of it, in messages.

    With `make` a database that is no catalog yet becomes one.
    """
    known = read_connections(places.connections_file)
    if connection == LOCAL and LOCAL not in known.names():
        return open_local(places.lakehouse_folder, what)
    return open_connection(connection, known, what=what, make=make)


def open_connection(
    connection: str, known: Connections, *, what: str, make: bool = True
) -> OpenCatalog:
    to = known.find(connection, IcebergConnection)
    place = _place(to, known)
    with translate_errors(Reached(f"{what}: {place}", place)):
        opener = _OPENERS[to.catalog]
        more = {} if make else {"init_catalog_tables": "false"}
        return OpenCatalog(opener(connection, to, known, more), place)


def open_local(folder: Path, what: str) -> OpenCatalog:
    warehouse = folder / "warehouse"
    with translate_errors(Reached(f"{what}: the lakehouse in {folder}", str(folder))):
        warehouse.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder / DATABASE}"
        place = f"file://{warehouse}"
        catalog = in_warehouse(SqlCatalog)(LOCAL, uri=uri, warehouse=place, **options([place]))
        return OpenCatalog(catalog, str(warehouse))


def is_yet_to_be_made(connection: str, places: SinkPlaces) -> bool:
    """Return True if it is the local one, and nothing was ever written there."""
    if connection != LOCAL or (places.lakehouse_folder / DATABASE).exists():
        return False
    return LOCAL not in read_connections(places.connections_file).names()


def _rest(connection: str, to: IcebergConnection, known: Connections, more: Properties) -> Catalog:
    secrets = {"token": to.token, "credential": to.credential}
    properties: dict[str, Any] = {
        **_files(connection, to, known),
        **{key: each.read(connection) for key, each in secrets.items() if each is not None},
        "uri": to.uri or "",
        **({"scope": to.scope} if to.scope else {}),
        **({"ssl": {"cabundle": str(to.root_certificate)}} if to.root_certificate else {}),
    }
    catalog = _class("waybill_spark.sinks.iceberg.rest", "PatientRestCatalog")
    return catalog(connection, **properties)


def _sql(connection: str, to: IcebergConnection, known: Connections, more: Properties) -> Catalog:
    assert to.database is not None
    base = known.find(to.database, PostgresConnection)
    url = URL.create(
        "postgresql+psycopg",
        username=base.user,
        password=None if base.password is None else base.password.read(to.database),
        host=base.host,
        port=base.port,
        database=base.database,
        query={
            "sslmode": base.sslmode,
            **({"sslrootcert": str(base.root_certificate)} if base.root_certificate else {}),
            "connect_timeout": str(CONNECT_TIMEOUT_S),
            "keepalives_idle": str(SILENCE_S // 3),
            "keepalives_interval": str(SILENCE_S // 3),
            "keepalives_count": "2",
            "tcp_user_timeout": str(SILENCE_S * 1000),
            "options": f"-c lock_timeout={SILENCE_S}s -c statement_timeout={2 * SILENCE_S}s",
            "application_name": "waybill",
        },
    )
    uri = url.render_as_string(hide_password=False)
    files = _files(connection, to, known)
    catalog = in_warehouse(SqlCatalog)
    return catalog(to.name or connection, uri=uri, pool_pre_ping="true", **files, **more)


def _hive(connection: str, to: IcebergConnection, known: Connections, more: Properties) -> Catalog:
    catalog = _class("pyiceberg.catalog.hive", "HiveCatalog")
    own = {"uri": to.uri or "", "hive.hive2-compatible": str(to.hive_version == 2)}
    return catalog(connection, **own, **_files(connection, to, known))


def _glue(connection: str, to: IcebergConnection, known: Connections, more: Properties) -> Catalog:
    own: Properties = {}
    if to.objects is not None:
        store = known.find(to.objects, S3Connection)
        own = {"glue.region": store.region}
        if store.access_key is not None and store.secret_key is not None:
            own["glue.access-key-id"] = store.access_key
            own["glue.secret-access-key"] = store.secret_key.read(to.objects)
    own |= {"glue.max-retries": 3}
    if to.uri is not None:
        own["glue.endpoint"] = to.uri
    catalog = _class("pyiceberg.catalog.glue", "GlueCatalog")
    return catalog(connection, **own, **_files(connection, to, known))


_OPENERS: Final[
    Mapping[str, Callable[[str, IcebergConnection, Connections, Properties], Catalog]]
] = {
    "rest": _rest,
    "sql": _sql,
    "hive": _hive,
    "glue": _glue,
}


def _place(to: IcebergConnection, known: Connections) -> str:
    if to.database is not None:
        return known.find(to.database, PostgresConnection).place
    return to.uri or f"Glue in {_region(known, to)}"


def _class(module: str, name: str) -> type[Catalog]:
    """Import the class of a catalog. Few drivers need these libraries."""
    found: type[Catalog] = getattr(import_module(module), name)
    return in_warehouse(found)


def _region(known: Connections, to: IcebergConnection) -> str:
    return "AWS" if to.objects is None else known.find(to.objects, S3Connection).region


def _files(connection: str, to: IcebergConnection, known: Connections) -> Properties:
    """Return the properties by which PyIceberg reaches data and metadata."""
    found: Properties = options(to.all_folders)
    if to.warehouse is not None:
        found["warehouse"] = as_location(to.warehouse)
    if to.objects is None:
        return found
    store = known.find(to.objects, S3Connection)
    if store.root_certificate is not None:
        message = f"connection {connection}: tables cannot be read with {to.objects}'s certificate"
        hint = "leave out its rootCertificate, and let the machine trust that authority"
        raise UserError([Problem(message=message, hint=hint)])
    found |= {
        "s3.region": store.region,
        "s3.connect-timeout": str(CONNECT_TIMEOUT_S),
        "s3.request-timeout": str(SILENCE_S),
    }
    if store.endpoint is not None:
        found |= {"s3.endpoint": store.endpoint, "s3.force-virtual-addressing": "false"}
    if store.access_key is not None and store.secret_key is not None:
        found["s3.access-key-id"] = store.access_key
        found["s3.secret-access-key"] = store.secret_key.read(to.objects)
    return found
