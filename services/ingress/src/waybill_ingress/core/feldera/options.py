"""Reads from the query of a request how its body is to be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.bodies.forms import Reader, character_of, invalid, of_rows
from waybill_ingress.core.feldera.updates import Updates, read_updates

NOTHING: Final = frozenset({b"[]", b"{}", b"null"})
ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = {
    "format": ("csv", "json"),
    "array": ("false", "true"),
    "update_format": ("insert_delete", "raw", "debezium"),
    "json_flavor": ("default", "pandas"),
    "lines": ("multiple", "single"),
    "force": ("false", "true"),
    "headers": ("false", "true"),
}
"""The values of each parameter. The first is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressOptions:
    read: Reader
    array: bool
    """True if one refused record refuses all."""
    nothing: frozenset[bytes]
    """Bodies without a record, in addition to an empty one."""


def read_options(given: Sequence[tuple[str, str]]) -> IngressOptions:
    """Return the options of the request. Unknown parameters are ignored. Raises UserError."""
    asked = dict(given)
    for name, accepted in ACCEPTED.items():
        value = asked.setdefault(name, accepted[0])
        if value not in accepted:
            raise invalid(
                name, f"{name}={value:.80} is not accepted", f"use {' or '.join(accepted)}"
            )
    if asked["format"] == "csv":
        csv = CsvOptions(
            delimiter=character_of(asked, "delimiter", ","), header=asked["headers"] == "true"
        )
        return IngressOptions(
            read=of_rows(partial(read_csv, options=csv)), array=False, nothing=frozenset()
        )
    array = asked["array"] == "true"
    updates = Updates(
        array=array,
        form=asked["update_format"],
        pandas=asked["json_flavor"] == "pandas",
    )
    return IngressOptions(
        read=of_rows(partial(read_updates, updates=updates)), array=array, nothing=NOTHING
    )
