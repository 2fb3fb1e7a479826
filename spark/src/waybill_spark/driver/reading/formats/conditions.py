"""Conditions that Spark computes only for the rows that need them."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def only_where(cheap: Column, expensive: Column) -> Column:
    """Return `cheap AND expensive`; `expensive` is computed only where `cheap` is true.

    An expression that comes twice in one projection is computed once, in advance, and for each row,
    although it follows an AND. The branches of a CASE are not.
    """
    return F.when(cheap, expensive).otherwise(F.lit(False))
