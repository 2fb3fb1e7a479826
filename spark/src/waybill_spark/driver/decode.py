"""From raw Kafka records to the columns of an input. A record that does not parse never becomes
a row of nulls, and one that breaks a rule becomes none: the same pass says which they are."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.manifest.columns import FROM_JSON_OPTIONS, parse_columns
from waybill_shared.contract.manifest.model import Expectation
from waybill_spark.driver.ignored import NAME_CHARACTERS, NAMES_MAX

PREVIEW_CHARACTERS: Final = 200
# Spark ignores what stands behind a value. In here, anything behind the record makes it malformed:
# more text breaks the array, brackets that close it early lose `end`, or make more than two keys.
# No record can have the end itself: nobody knows it before a driver starts.
BEFORE: Final = '{"record":['
END: Final = secrets.token_hex(8)
BEHIND: Final = f'],"end":"{END}"}}'
WRAPPED: Final = "struct<record: array<struct<{}>>, end: string>"

# Beside the columns of a record, which may have any name but these.
PARTITION: Final = f"partition_{END}"
OFFSET: Final = f"offset_{END}"
TEXT: Final = f"text_{END}"
MALFORMED: Final = f"malformed_{END}"
UNKNOWN: Final = f"unknown_{END}"
VERDICT: Final = f"verdict_{END}"
"""Null: the record is a row. 0: it is malformed. 1 and more: it breaks the rule of that number."""

Action = Literal["dead_letter", "drop", "warn", "fail"]


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
    on_malformed: Literal["dead_letter", "drop", "fail"] = "dead_letter"
    rules: tuple[Expectation, ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        """By verdict: what becomes of such a record."""
        return (self.on_malformed, *(rule.on_violation for rule in self.rules))

    @property
    def counted(self) -> list[int]:
        """The verdicts of which a pass tells how many there are; of the others it tells where."""
        return [number for number, each in enumerate(self.actions) if each != "dead_letter"]

    def verdicts(self, action: Action) -> list[int]:
        return [number for number, each in enumerate(self.actions) if each == action]

    def column_names(self) -> Column:
        """As an array, for Spark."""
        return F.array(*(F.lit(column.name) for column in parse_columns(self.columns)))


def decode(raw: DataFrame, source: DecodedInput) -> DataFrame:
    """The rows of one input's topic in `raw`, observed under the input's name."""
    observed = _judge(raw, source).observe(observation(source), _seen(source))
    rows = observed.where(F.col(VERDICT).isNull())
    return rows.drop(PARTITION, OFFSET, TEXT, MALFORMED, UNKNOWN, VERDICT)


def _judge(raw: DataFrame, source: DecodedInput) -> DataFrame:
    """The columns of each record of that topic, and its verdict.

    In steps of a plan that Spark does not unite, so that a record is parsed once.
    """
    options = dict(FROM_JSON_OPTIONS)
    if source.own_output:
        options["allowNonNumericNumbers"] = "true"  # our own sink may have written NaN
    text = F.col("value").cast("string")
    parsed = raw.where(F.col("topic") == source.topic).select(
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        text.alias(TEXT),
        F.from_json(_wrapped(text), WRAPPED.format(source.columns), options).alias("parsed"),
    )
    record, malformed = _record().alias("record"), _malformed(source)
    looked_at = parsed.select(
        PARTITION,
        OFFSET,
        TEXT,
        malformed.alias(MALFORMED),
        _told(source, ~malformed).alias(UNKNOWN),
        record,
    )
    columns = looked_at.select(PARTITION, OFFSET, TEXT, MALFORMED, UNKNOWN, "record.*")
    return columns.withColumn(VERDICT, _verdict(source))


def observation(source: DecodedInput) -> str:
    return f"decode:{source.name}"


def _record() -> Column:
    return F.get("parsed.record", F.lit(0))  # null where an index would raise


def _wrapped(text: Column) -> Column:
    return F.concat(F.lit(BEFORE), text, F.lit(BEHIND))


def _malformed(source: DecodedInput) -> Column:
    text = F.col(TEXT)
    malformed = (
        ~F.col("parsed.end").eqNullSafe(END)
        | (F.size("parsed.record") != 1)
        | _record().isNull()
        | ~F.is_valid_utf8(text)
        | (text.contains("]") & _more_keys(F.json_object_keys(_wrapped(text))))
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


def _told(source: DecodedInput, well_formed: Column) -> Column:
    """The names of fields that are no columns, where people hear of them."""
    if source.own_output or source.strict:
        return F.lit(None).cast("array<string>")
    return F.when(well_formed, _unknown(source))


def _unknown(source: DecodedInput) -> Column:
    found = F.array_except(F.json_object_keys(TEXT), source.column_names())
    return F.when(_only_columns(source), F.lit([]).cast("array<string>")).otherwise(found)


def _only_columns(source: DecodedInput) -> Column:
    """Whether it is plain without a second look at the text that there is no other field: every
    column has a value, and there are no more colons than columns. To find them is cheap."""
    columns = parse_columns(source.columns)
    has_all = [_record().getField(column.name).isNotNull() for column in columns]
    before_one_more = F.substring_index(TEXT, ":", len(columns) + 1)
    no_more = F.octet_length(before_one_more) == F.octet_length(TEXT)
    return reduce(and_, has_all) & no_more


def _verdict(source: DecodedInput) -> Column:
    """The first that applies; no rule looks at a record that is malformed, or is judged already."""
    verdict = F.when(F.col(MALFORMED), F.lit(0))
    for number, rule in enumerate(source.rules, 1):
        if rule.on_violation != "warn":
            verdict = verdict.when(_broken(rule), F.lit(number))
    return verdict


def _broken(rule: Expectation) -> Column:
    return ~F.coalesce(F.expr(rule.expect), F.lit(False))


def _seen(source: DecodedInput) -> Column:
    kept = F.col(VERDICT).isNull()
    ignored = kept & (F.size(UNKNOWN) > 0)
    names = F.transform(F.slice(UNKNOWN, 1, NAMES_MAX), lambda n: n.substr(1, NAME_CHARACTERS))
    seen = F.struct(
        F.count(F.lit(1)).alias("records"),
        F.max(F.octet_length(TEXT)).alias("largest"),
        *_counts(source),
        *_dead(source),
        *_first(source),
        F.count_if(ignored).alias("ignored"),
        F.min(F.when(ignored, names)).alias("some"),  # to gather all is not deterministic
        F.max(F.when(ignored, names)).alias("others"),
    )
    return F.to_json(seen).alias("seen")


def counted_as(verdict: int) -> str:
    return f"count_{verdict}"


def _counts(source: DecodedInput) -> Iterator[Column]:
    """What only warns is asked of what becomes a row."""
    for number in source.counted:
        found = F.col(VERDICT) == number
        if source.actions[number] == "warn":
            found = F.col(VERDICT).isNull() & _broken(source.rules[number - 1])
        yield F.count_if(found).alias(counted_as(number))


def _dead(source: DecodedInput) -> Iterator[Column]:
    """Where they lie that go to a dead-letter topic, in no order. Less than the rows of as many."""
    deadly = source.verdicts("dead_letter")
    if deadly:
        verdict = F.col(VERDICT)
        position = F.array(F.col(PARTITION).cast("bigint"), OFFSET, verdict.cast("bigint"))
        yield F.collect_list(F.when(verdict.isin(deadly), position)).alias("dead")


def _first(source: DecodedInput) -> Iterator[Column]:
    """The first record that ends the stage, of the first thing that does."""
    fatal = source.verdicts("fail")
    if fatal:
        verdict = F.col(VERDICT)
        preview = F.coalesce(F.substring(TEXT, 1, PREVIEW_CHARACTERS), F.lit("<null>"))
        position = F.struct(
            verdict.alias("verdict"),
            F.col(PARTITION).alias("partition"),
            F.col(OFFSET).alias("offset"),
            F.make_valid_utf8(preview).alias("text"),
        )
        yield F.min(F.when(verdict.isin(fatal), position)).alias("first")
