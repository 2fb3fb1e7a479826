"""From raw Kafka records to the columns of an input. A record that does not parse never becomes
a row of nulls: it is counted in the same pass, and the batch is refused before any sink."""

import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.errors import ContractError
from waybill_shared.contract.manifest.columns import FROM_JSON_OPTIONS, parse_columns, unknown_field
from waybill_spark.driver.ignored import NAME_CHARACTERS, NAMES_MAX, Ignored
from waybill_spark.driver.sizes import RecordSizes

PREVIEW_CHARACTERS = 200
# Spark ignores what stands behind a value. In here, anything behind the record makes it malformed:
# more text breaks the array, brackets that close it early lose `end`, or make more than two keys.
# No record can have the end itself: nobody knows it before a driver starts.
BEFORE = '{"record":['
END = secrets.token_hex(8)
BEHIND = f'],"end":"{END}"}}'
WRAPPED = "struct<record: array<struct<{}>>, end: string>"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedInput:
    """How an input is decoded; `own_output` when a stage of this pipeline writes the topic.

    `strict`: a record with a field that is no column is malformed. If not, it is told.
    """

    name: str
    topic: str
    columns: str
    own_output: bool
    strict: bool = False

    def column_names(self) -> Column:
        """As an array, for Spark."""
        return F.array(*(F.lit(column.name) for column in parse_columns(self.columns)))


class MalformedRecord(ContractError):
    """A record that is not of its input's schema, with the first one's position."""

    def __init__(
        self, source: DecodedInput, count: int, partition: int, offset: int, text: str
    ) -> None:
        self.position = f"{source.topic}[{partition}]@{offset}"
        self.input_name = source.name
        super().__init__(
            f"input {source.name}: {count} record(s) do not fit its schema; the first is"
            f" {self.position}: {text}"
        )


def decode(raw: DataFrame, source: DecodedInput) -> DataFrame:
    """The rows of one input's topic in `raw`, observed under the input's name."""
    options = dict(FROM_JSON_OPTIONS)
    if source.own_output:
        options["allowNonNumericNumbers"] = "true"  # our own sink may have written NaN
    text = F.col("value").cast("string")
    parsed = F.from_json(_wrapped(text), WRAPPED.format(source.columns), options)
    rows = raw.where(F.col("topic") == source.topic).select(
        "partition",
        "offset",
        text.alias("text"),
        parsed.alias("parsed"),
    )
    observed = rows.observe(observation(source), _seen(source))
    return observed.select(_record().alias("row")).select("row.*")


def observation(source: DecodedInput) -> str:
    return f"decode:{source.name}"


def refuse_malformed(
    execution: JavaObject, sources: tuple[DecodedInput, ...], sizes: RecordSizes, ignored: Ignored
) -> None:
    """After an execution has run: raise MalformedRecord if one of its inputs held such a record.

    The same pass has seen how large the records are, and which of their fields are no columns.
    """
    metrics = execution.observedMetrics()
    for source in sources:
        found = metrics.get(observation(source))
        if found.isDefined():
            seen = json.loads(found.get().getString(0))
            sizes.met(records=seen["records"], largest=seen.get("largest", 0))
            _refuse(source, seen["malformed"], seen.get("first"))
            if not source.strict:
                names = (*seen.get("some", ()), *seen.get("others", ()))
                ignored.met(source.name, seen["ignored"], _warnings(source, names))


def _record() -> Column:
    return F.get("parsed.record", F.lit(0))  # null where an index would raise


def _wrapped(text: Column) -> Column:
    return F.concat(F.lit(BEFORE), text, F.lit(BEHIND))


def _malformed(source: DecodedInput) -> Column:
    malformed = (
        ~F.col("parsed.end").eqNullSafe(END)
        | (F.size("parsed.record") != 1)
        | _record().isNull()
        | ~F.is_valid_utf8(F.col("text"))
        | (F.col("text").contains("]") & _more_keys(F.json_object_keys(_wrapped(F.col("text")))))
    )
    if source.own_output:
        return malformed  # a stage writes its own columns, and none is NOT NULL
    for column in parse_columns(source.columns):
        if column.required:  # from_json itself takes null for it
            malformed |= _record().getField(column.name).isNull()
    if source.strict:
        malformed |= F.coalesce(F.size(_unknown(source)) > 0, F.lit(True))
    return malformed


def _more_keys(keys: Column) -> Column:
    return F.coalesce(F.size(keys) != 2, F.lit(True))


def _unknown(source: DecodedInput) -> Column:
    """The names of fields that are no columns."""
    if source.own_output:
        return F.lit([]).cast("array<string>")
    found = F.array_except(F.json_object_keys("text"), source.column_names())
    return F.when(_only_columns(source), F.lit([]).cast("array<string>")).otherwise(found)


def _only_columns(source: DecodedInput) -> Column:
    """Whether it is plain without a second look at the text that there is no other field: every
    column has a value, and there are no more colons than columns. To find them is cheap."""
    columns = parse_columns(source.columns)
    has_all = [_record().getField(column.name).isNotNull() for column in columns]
    before_one_more = F.substring_index("text", ":", len(columns) + 1)
    no_more = F.octet_length(before_one_more) == F.octet_length("text")
    return reduce(and_, has_all) & no_more


def _seen(source: DecodedInput) -> Column:
    malformed = _malformed(source)
    unknown = _unknown(source)
    ignored = F.size(unknown) > 0
    names = F.transform(F.slice(unknown, 1, NAMES_MAX), lambda n: n.substr(1, NAME_CHARACTERS))
    preview = F.coalesce(F.substring("text", 1, PREVIEW_CHARACTERS), F.lit("<null>"))
    position = F.struct("partition", "offset", F.make_valid_utf8(preview).alias("text"))
    seen = F.struct(
        F.count(F.lit(1)).alias("records"),
        F.max(F.octet_length("text")).alias("largest"),
        F.count_if(malformed).alias("malformed"),
        F.min(F.when(malformed, position)).alias("first"),
        F.count_if(ignored).alias("ignored"),
        F.min(F.when(ignored, names)).alias("some"),  # to gather all is not deterministic
        F.max(F.when(ignored, names)).alias("others"),
    )
    return F.to_json(seen).alias("seen")


def _warnings(source: DecodedInput, names: Iterable[str]) -> Iterator[str]:
    columns = parse_columns(source.columns)
    for name in names:
        warning = unknown_field(columns, {name: None})
        if warning is not None:
            yield warning


def _refuse(source: DecodedInput, count: int, first: dict[str, Any] | None) -> None:
    if count and first is not None:
        raise MalformedRecord(
            source, count, first["partition"], first["offset"], first.get("text", "")
        )
