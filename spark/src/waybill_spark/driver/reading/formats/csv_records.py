"""Records of CSV: one line each, with a field for each column, in their order."""

import re
from collections.abc import Callable
from functools import partial, reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.formats.csv_lines import NO_TEXT, CsvForm, inside_quotes
from waybill_shared.contract.formats.csv_values import DIGITS_MAX, WHOLE, converter
from waybill_shared.contract.manifest.values import DATE, FROM_JSON_OPTIONS, NUMERIC, TIMESTAMP
from waybill_spark.driver.reading.formats.conditions import only_where
from waybill_spark.driver.reading.formats.names import (
    END,
    EXTRA_COLUMNS,
    MALFORMED,
    OFFSET,
    PARTITION,
    TEXT,
    no_unknown,
    place,
)
from waybill_spark.driver.reading.inputs import DecodedInput

OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "multiLine": "true",  # an end of line in quotes stays as it is
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "nullValue": f"null_{END}",  # a field that nobody has: what is null is decided here
    "emptyValue": "",
    "maxCharsPerColumn": "-1",
    "maxColumns": "20480",
}
FIRST_DAY: Final = "0001-01-01"
BEGIN: Final = "begin"  # keeps a byte order mark, or what might be a comment, in its field
ZERO: Final = r"\A[+-]?[0.]+[eE]"  # Spark's cast refuses it where the exponent is large
INFINITE: Final = (float("inf"), float("-inf"))

Typed = Callable[[Column], Column]
"""The value of a field; null if the column does not take it."""


def read(raw: DataFrame, source: DecodedInput) -> DataFrame:
    form = source.keys.csv or CsvForm()
    columns = source.columns_to_parse()
    names = [f"field_{number}" for number in range(len(columns))]
    text = F.col("value").cast("string")
    parsed = raw.select(*place(), text.alias(TEXT), _parse(text, names, form).alias("parsed"))
    fields = parsed.select(
        PARTITION,
        OFFSET,
        TEXT,
        _no_record(names, form).alias("no_record"),
        *(_field(name, form).alias(name) for name in names),
    )
    typed = fields.select(
        *(PARTITION, OFFSET, TEXT, "no_record"),
        *(F.col(name).isNotNull().alias(f"given_{name}") for name in names),
        *(
            _as_type(column.type)(F.col(name)).alias(f"value_{name}")
            for name, column in zip(names, columns, strict=True)
        ),
    )
    wrong = [
        F.col(f"value_{name}").isNull() & (F.lit(column.required) | F.col(f"given_{name}"))
        for name, column in zip(names, columns, strict=True)
    ]
    row = F.struct(
        *(
            F.col(f"value_{name}").alias(column.name)
            for name, column in zip(names, columns, strict=True)
        )
    )
    looked_at = typed.select(
        *(PARTITION, OFFSET, TEXT),
        reduce(or_, wrong, F.col("no_record")).alias(MALFORMED),
        no_unknown(),
        row.alias("record"),
    )
    return looked_at.select(*EXTRA_COLUMNS, "record.*")


def why(value: bytes, source: DecodedInput) -> str | None:
    try:
        fields = (source.keys.csv or CsvForm()).split(value.decode())
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except ValueError as error:
        return f"not CSV: {error}"
    columns = source.columns_to_parse()
    if len(fields) != len(columns):
        some = f"{len(fields)} field{'s' if len(fields) != 1 else ''}"
        return f"{some}, where {len(columns)} are expected"
    for number, (text, column) in enumerate(zip(fields, columns, strict=True), 1):
        if text is not None:
            _, reason = converter(column)(text)
        else:
            is_null = f"{column.name}: is null, and the column is NOT NULL"
            reason = is_null if column.required else None
        if reason is not None:
            return f"field {number}: {reason}"
    return None


def _parse(text: Column, names: list[str], form: CsvForm, **options: str) -> Column:
    quote = form.quote or NO_TEXT
    schema = ", ".join(f"{name} STRING" for name in (BEGIN, *names, "end"))
    before, after = F.lit(END + form.delimiter), F.lit(form.delimiter + END)
    marked = F.concat(before, _without_end(text), after)
    given = {"sep": form.delimiter, "quote": quote, "escape": form.escape or quote}
    if not form.escape:
        given["charToEscapeQuoteEscaping"] = NO_TEXT  # else Spark drops U+0000 there
    return F.from_csv(marked, schema, {**OPTIONS, **given, **options})


def _no_record(names: list[str], form: CsvForm) -> Column:
    """Return True for a line that has other fields than the columns, or is none; and for what Spark
    would wrongly accept as one.
    """
    text = F.col(TEXT)
    found = (
        text.isNull()
        | ~F.is_valid_utf8(text)
        | ~F.col(f"parsed.{BEGIN}").eqNullSafe(END)
        | ~F.col("parsed.end").eqNullSafe(END)
        | text.contains(NO_TEXT)
        | only_where(text.contains("\n"), _has_second_line(text, form))
    )
    return found | _has_text_after_quote(names, form) if form.quote else found


def _has_second_line(text: Column, form: CsvForm) -> Column:
    """Return True if there is a second line.

    Spark reads an end of line outside of quotes as text.
    """
    line = _without_end(text)
    if form.quote:
        delimiter, quote = re.escape(form.delimiter), re.escape(form.quote)
        quoted = rf"(?:\A|{delimiter}){quote}{inside_quotes(form)}{quote}"
        line = F.regexp_replace(line, quoted, "")
    return line.contains("\n")


def _has_text_after_quote(names: list[str], form: CsvForm) -> Column:
    """Return True if text follows a quoted field.

    Spark reads such a field with its quotes, as text. Where that is possible the line is read once
    more, so that the field is null.
    """
    fields = [F.col(f"parsed.{name}") for name in names]
    strictly = _parse(F.col(TEXT), names, form, unescapedQuoteHandling="SKIP_VALUE")
    doubtful = reduce(or_, (field.startswith(form.quote) for field in fields))
    skipped = reduce(
        or_,
        (
            strictly[name].isNull() & field.isNotNull()
            for name, field in zip(names, fields, strict=True)
        ),
    )
    return only_where(doubtful, skipped)


def _without_end(text: Column) -> Column:
    return F.when(text.endswith("\n"), F.regexp_replace(text, r"\r?\n\z", "")).otherwise(text)


def _field(name: str, form: CsvForm) -> Column:
    text = F.coalesce(F.col(f"parsed.{name}"), F.lit(""))  # null if there is nothing
    return F.when(text != form.null_text, text)


def _as_type(declared: str) -> Typed:
    kind = re.split(r"[(<]", declared)[0].strip()
    return _decimal(declared) if kind == "DECIMAL" else KINDS[kind]


def _of_form(form: re.Pattern[str], value: Typed) -> Typed:
    """Return a reader that accepts only texts of this form.

    Long texts are no numbers, and Spark needs long to find out.
    """
    pattern = rf"\A(?:{form.pattern})\z"
    return lambda text: F.when((F.length(text) <= DIGITS_MAX) & text.rlike(pattern), value(text))


def _cast(kind: str) -> Typed:
    return lambda text: text.try_cast(kind)


def _as_float(kind: str) -> Typed:
    def value(text: Column) -> Column:
        number = text.try_cast(kind)
        return F.when(~number.isin(*INFINITE), number)

    return _of_form(NUMERIC, value)


def _decimal(declared: str) -> Typed:
    cast = _cast(declared if "(" in declared else "DECIMAL(10,0)")
    return _of_form(NUMERIC, lambda text: cast(F.when(text.rlike(ZERO), "0").otherwise(text)))


def _boolean(text: Column) -> Column:
    lower = F.lower(text)
    return F.when(lower.isin("true", "false"), lower == "true")


def _date(text: Column) -> Column:
    date = text.try_cast("date")
    return F.when(date >= F.lit(FIRST_DAY).cast("date"), date)


def _timestamp(text: Column) -> Column:
    moment = F.try_to_timestamp(text, F.lit(FROM_JSON_OPTIONS["timestampFormat"]))
    return F.when(F.substring(text, 1, 10) >= FIRST_DAY, moment)


_whole = partial(_of_form, WHOLE)
KINDS: Final[dict[str, Typed]] = {
    "BOOLEAN": _boolean,
    "INT": _whole(_cast("int")),
    "INTEGER": _whole(_cast("int")),
    "BIGINT": _whole(_cast("bigint")),
    "LONG": _whole(_cast("bigint")),
    "FLOAT": _as_float("float"),
    "DOUBLE": _as_float("double"),
    "STRING": lambda text: text,
    "DATE": _of_form(DATE, _date),
    "TIMESTAMP": _of_form(TIMESTAMP, _timestamp),
}
