"""The names of columns that are added to those of a record, which may have any name but these."""

import secrets
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

END: Final = secrets.token_hex(8)
"""Follows each record while it is read.

No record can contain it: nobody knows it before a driver starts.
"""
PARTITION: Final = f"partition_{END}"
OFFSET: Final = f"offset_{END}"
TEXT: Final = f"text_{END}"
"""The record as it is, as text where it is text."""
MALFORMED: Final = f"malformed_{END}"
UNKNOWN: Final = f"unknown_{END}"
"""Names of fields that are no columns; null where nobody asks."""
EXTRA_COLUMNS: Final = (PARTITION, OFFSET, TEXT, MALFORMED, UNKNOWN)


def place() -> tuple[Column, Column]:
    return F.col("partition").alias(PARTITION), F.col("offset").alias(OFFSET)


def no_unknown() -> Column:
    return F.lit(None).cast("array<string>").alias(UNKNOWN)
