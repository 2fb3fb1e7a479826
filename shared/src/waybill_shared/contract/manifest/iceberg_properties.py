"""The properties that a manifest may give an Iceberg table: this list, and no others.

Libraries read properties of a table as instructions: which code reaches its files, at which
address, with which keys, in which folder. None of these is here. docs/iceberg.md shows the list.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from waybill_shared.contract.suggestions import nearest

OWN: Final = "user."
OURS: Final = ("waybill.", "commit.retry.")
TEXT_CHARACTERS_MAX: Final = 2_000
NUMBER_MAX: Final = 2**63 - 1  # a long of Java, which other readers take
REASONS: Final[Mapping[str, str]] = {
    r".*impl|.*location-provider.*": "it names code",
    r".*(token|credential|secret|password|[.-]key|signer|sigv4|auth).*": "it is about credentials",
    r"(s3|s3a|client|glue|rest|adls|gcs|oss|hdfs|hf|hive|header)\..*|.*(endpoint|proxy|uri|url)": (
        "it says how a store or catalog is reached"
    ),
    r"location|warehouse|.*[.-](path|location)|write\.(object|folder)-storage\..*": (
        "it says where files are"
    ),
}
"""Why a name that is like this is not in the list, for the message; the list alone decides."""


@dataclass(frozen=True, slots=True)
class ValueForm:
    """`words`: what a value is, in docs and messages."""

    words: str
    takes: Callable[[str], bool]


def _one_of(*values: str) -> ValueForm:
    return ValueForm(" or ".join(f"`{value}`" for value in values), frozenset(values).__contains__)


def _number(least: int, most: int = NUMBER_MAX) -> ValueForm:
    """Return the form of a whole number."""
    words = f"a whole number from {least}" + (f" to {most}" if most != NUMBER_MAX else "")

    def takes(value: str) -> bool:
        return bool(re.fullmatch(r"-?[0-9]{1,19}", value)) and least <= int(value) <= most

    return ValueForm(words, takes)


def _match(words: str, pattern: str) -> ValueForm:
    return ValueForm(words, lambda value: re.fullmatch(pattern, value) is not None)


FLAG: Final = _one_of("true", "false")
SIZE: Final = _number(1)
COUNT: Final = _number(0)
LEVEL: Final = _number(-7, 22)
COPIES: Final = _one_of("copy-on-write")
ISOLATION: Final = _one_of("serializable", "snapshot")
DISTRIBUTION: Final = _one_of("none", "hash", "range")
METRICS: Final = _match(
    "`none`, `counts`, `full` or `truncate(N)`", r"none|counts|full|truncate\([1-9][0-9]{0,3}\)"
)
SHARE: Final = _match("a number between 0 and 1, such as `0.01`", r"0?\.[0-9]{0,17}[1-9]")
TEXT: Final = ValueForm(
    f"a text of at most {TEXT_CHARACTERS_MAX} characters",
    lambda value: len(value) <= TEXT_CHARACTERS_MAX and "\0" not in value,
)
COLUMN: Final = "<column>"
REST: Final = "<name>"
NAME_END: Final = {COLUMN: r"[^\x00]{1,255}", REST: r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}"}

TABLE_PROPERTIES: Final[Mapping[str, ValueForm]] = {
    "comment": TEXT,
    "owner": TEXT,
    f"{OWN}{REST}": TEXT,
    "format-version": _one_of("2"),
    "write.format.default": _one_of("parquet"),
    "write.delete.mode": COPIES,
    "write.update.mode": COPIES,
    "write.merge.mode": COPIES,
    "write.target-file-size-bytes": SIZE,
    "write.delete.target-file-size-bytes": SIZE,
    "write.parquet.compression-codec": _one_of(
        "zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"
    ),
    "write.parquet.compression-level": LEVEL,
    "write.parquet.row-group-size-bytes": SIZE,
    "write.parquet.row-group-limit": SIZE,
    "write.parquet.page-size-bytes": SIZE,
    "write.parquet.page-row-limit": SIZE,
    "write.parquet.dict-size-bytes": SIZE,
    "write.parquet.row-group-check-min-record-count": SIZE,
    "write.parquet.row-group-check-max-record-count": SIZE,
    "write.parquet.bloom-filter-max-bytes": SIZE,
    f"write.parquet.bloom-filter-enabled.column.{COLUMN}": FLAG,
    f"write.parquet.bloom-filter-fpp.column.{COLUMN}": SHARE,
    f"write.parquet.stats-enabled.column.{COLUMN}": FLAG,
    "write.avro.compression-codec": _one_of("gzip", "zstd"),
    "write.metadata.compression-codec": _one_of("none", "gzip"),
    "write.metadata.delete-after-commit.enabled": FLAG,
    "write.metadata.previous-versions-max": SIZE,
    "write.metadata.metrics.default": METRICS,
    f"write.metadata.metrics.column.{COLUMN}": METRICS,
    "write.metadata.metrics.max-inferred-column-defaults": COUNT,
    "write.summary.partition-limit": COUNT,
    "write.distribution-mode": DISTRIBUTION,
    "write.delete.distribution-mode": DISTRIBUTION,
    "write.update.distribution-mode": DISTRIBUTION,
    "write.merge.distribution-mode": DISTRIBUTION,
    "write.delete.isolation-level": ISOLATION,
    "write.update.isolation-level": ISOLATION,
    "write.merge.isolation-level": ISOLATION,
    "write.spark.fanout.enabled": FLAG,
    "write.spark.advisory-partition-size-bytes": SIZE,
    "commit.manifest.target-size-bytes": SIZE,
    "commit.manifest.min-count-to-merge": SIZE,
    "commit.manifest-merge.enabled": FLAG,
    "history.expire.max-snapshot-age-ms": SIZE,
    "history.expire.min-snapshots-to-keep": SIZE,
    "history.expire.max-ref-age-ms": SIZE,
    "gc.enabled": FLAG,
    "read.split.target-size": SIZE,
    "read.split.metadata-target-size": SIZE,
    "read.split.planning-lookback": SIZE,
    "read.split.open-file-cost": COUNT,
    "read.split.adaptive-size.enabled": FLAG,
    "read.parquet.vectorization.enabled": FLAG,
    "read.parquet.vectorization.batch-size": SIZE,
}
"""By name what a value may be. A name in <…> is any: of a column, or one's own."""


def why_refused(name: str, value: str) -> tuple[str, str] | None:
    """Return why a manifest may not set this property, and a hint; None if it may."""
    if name.startswith(OURS):
        return f"{name} is Waybill's own to set", ""
    form = next((form for row, form in TABLE_PROPERTIES.items() if _is_meant(row, name)), None)
    if form is None:
        return _not_listed(name)
    if not form.takes(value):
        return f"{name} is {form.words.replace('`', '')}; this is {value!r:.80}", ""
    return None


def names_schema() -> dict[str, JsonValue]:
    """Return what the schema of a manifest says of the names, for editors."""
    exact: list[JsonValue] = [name for name in TABLE_PROPERTIES if "<" not in name]
    others = "|".join(_pattern(name) for name in TABLE_PROPERTIES if "<" in name)
    return {"propertyNames": {"anyOf": [{"enum": exact}, {"pattern": others}]}}


def _is_meant(row: str, name: str) -> bool:
    return re.fullmatch(_pattern(row), name) is not None if "<" in row else row == name


def _pattern(row: str) -> str:
    start, opening, end = row.partition("<")
    return "^" + start.replace(".", r"\.") + NAME_END[opening + end] + "$"


def _not_listed(name: str) -> tuple[str, str]:
    message = f"{name:.200} is no property that a manifest may set"
    why = next((why for like, why in REASONS.items() if re.fullmatch(like, name.lower())), None)
    if why is not None:
        return f"{message}: {why}", "leave it out: the file of connections says that"
    close = nearest(name, [*TABLE_PROPERTIES])
    guess = "" if close is None else f"did you mean {close!r}? "
    return message, f"{guess}names of your own begin with {OWN}; the list is in docs/iceberg.md"
