"""The rows that a sink gets: as a schema, if it can be one, and with the columns that it names."""

import pyarrow as pa
from pyspark.errors import PySparkTypeError, UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import NullType

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.model import Sink
from waybill_shared.contract.suggestions import hint_of_names


def schema_for(sink: Sink, frame: DataFrame, path: str) -> pa.Schema:
    _refuse_columns(frame, path)
    _refuse_missing(frame, sink, path)
    return _schema(frame, path)


def _refuse_columns(frame: DataFrame, path: str) -> None:
    """Refuse columns that would fail only at the first row, in a driver that fails again and
    again.
    """
    seen: set[str] = set()
    for column in frame.schema:
        name = column.name
        if name.lower() in seen:
            problem = Problem(
                message=f"column {name!r} appears twice", path=path, hint=f"rename one: {name} AS …"
            )
            raise UserError([problem])
        if isinstance(column.dataType, NullType):
            hint = "give it one: CAST(NULL AS STRING)"
            raise UserError([Problem(message=f"column {name!r} has no type", path=path, hint=hint)])
        seen.add(name.lower())


def _schema(frame: DataFrame, path: str) -> pa.Schema:
    try:
        return to_arrow_schema(
            frame.schema, error_on_duplicated_field_names_in_struct=True, timestamp_utc=True
        )
    except UnsupportedOperationException as error:
        message = "a column holds a struct that has two fields of one name"
        hint = "name them: named_struct('a', …, 'b', …)"
        raise UserError([Problem(message=message, path=path, hint=hint)]) from error
    except PySparkTypeError as error:
        known = error.getMessageParameters() or {}
        message = f"a column has the type {known.get('data_type', '')}, which no sink takes"
        hint = "make it text: CAST(… AS STRING)"
        raise UserError([Problem(message=message, path=path, hint=hint)]) from error


def _refuse_missing(frame: DataFrame, sink: Sink, path: str) -> None:
    for key, column in sink.settings.columns_named.items():
        if column not in frame.columns:
            message = f"sink {sink.name}: {key} {column!r} is not a column"
            hint = hint_of_names(column, frame.columns, "columns")
            path = f"{path}.{sink.kind}.{key}"
            raise UserError([Problem(message=message, path=path, hint=hint)])
