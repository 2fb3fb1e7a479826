"""The local Iceberg catalog: JDBC on SQLite, opened alike by PyIceberg and by Spark."""

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

NAME = "lakehouse"


def open_catalog(folder: Path) -> SqlCatalog:
    warehouse = folder / "warehouse"
    warehouse.mkdir(parents=True, exist_ok=True)
    return SqlCatalog(
        NAME, uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{warehouse}"
    )
