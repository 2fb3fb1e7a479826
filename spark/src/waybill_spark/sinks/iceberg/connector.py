"""Tries a connection to a catalog of Iceberg tables: whether it answers."""

from contextlib import closing
from typing import Final

from pyiceberg.catalog import Catalog
from sqlalchemy.exc import ProgrammingError

from waybill_shared.connections import Connections, Connector
from waybill_spark.sinks.iceberg.catalogs import open_connection
from waybill_spark.sinks.iceberg.connection import Reached, translate_errors
from waybill_spark.sinks.iceberg.tables import is_no_catalog_yet


class IcebergConnector:
    def reach(self, name: str, connections: Connections) -> str:
        catalog = open_connection(name, connections, what=f"connection {name}", make=False)
        with (
            closing(catalog.tables),
            translate_errors(Reached(f"connection {name}: {catalog.place}", catalog.place)),
        ):
            number = _namespaces(catalog.tables)
        return f"Iceberg catalog at {catalog.place}, namespaces: {number}"


def _namespaces(catalog: Catalog) -> int:
    try:
        return len(catalog.list_namespaces())
    except ProgrammingError as error:
        if is_no_catalog_yet(error):
            return 0
        raise


CONNECTOR: Final[Connector] = IcebergConnector()
