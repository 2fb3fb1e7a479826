"""Tries a connection to a catalog of Iceberg tables: whether it answers."""

from contextlib import closing
from typing import Final

from waybill_shared.connections import Connections, Connector
from waybill_spark.sinks.iceberg.catalogs import open_connection
from waybill_spark.sinks.iceberg.connection import Reached, told


class IcebergConnector:
    def reach(self, name: str, connections: Connections) -> str:
        catalog = open_connection(name, connections, what=f"connection {name}")
        with (
            closing(catalog.tables),
            told(Reached(f"connection {name}: {catalog.place}", catalog.place)),
        ):
            number = len(catalog.tables.list_namespaces())
        return f"Iceberg catalog at {catalog.place}, {number} namespaces"


CONNECTOR: Final[Connector] = IcebergConnector()
