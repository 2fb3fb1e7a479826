"""The local Iceberg catalog: JDBC on SQLite, opened alike by PyIceberg and by Spark."""

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import SQLAlchemyError

from waybill_spark.sinks.contract import SinkUnreachable

NAME = "lakehouse"
DATABASE = "catalog.db"


def has_catalog(folder: Path) -> bool:
    return (folder / DATABASE).exists()


def open_catalog(folder: Path) -> SqlCatalog:
    warehouse = folder / "warehouse"
    try:
        warehouse.mkdir(parents=True, exist_ok=True)
        return SqlCatalog(
            NAME, uri=f"sqlite:///{folder / DATABASE}", warehouse=f"file://{warehouse}"
        )
    except (SQLAlchemyError, OSError) as error:
        raise SinkUnreachable(
            f"the lakehouse in {folder} cannot be opened: {why(error)}",
            hint=f"see that {folder} has room and may be written to; it is tried again",
        ) from error


def why(error: SQLAlchemyError | OSError) -> str:
    """What the database said, without the statement that it said it of."""
    return str(getattr(error, "orig", None) or error)
