"""Reads the tables of accepted values: of JSON, and of the fields of CSV files."""

import base64
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

TABLE = Path(__file__).with_suffix(".yaml")
CSV_TABLE = Path(__file__).with_name("accepted_csv_values.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedValue:
    """One record of one column `c`; `gives` is what Spark makes of `c`, None if it refuses."""

    type: str
    record: bytes | None
    accepted: bool
    gives: str | None

    def __str__(self) -> str:
        shown = "null" if self.record is None else self.record.decode(errors="replace")
        return f"{self.type} {shown[:60]}"


def accepted_values() -> tuple[AcceptedValue, ...]:
    groups = YAML(typ="safe", pure=True).load(TABLE.read_text())
    return tuple(
        AcceptedValue(
            type=str(group["type"]),
            record=_record(case),
            accepted=bool(case["accepted"]),
            gives=case.get("gives"),
        )
        for group in groups
        for case in group["cases"]
    )


def _record(case: dict[str, str | None]) -> bytes | None:
    if "base64" in case:
        return base64.b64decode(str(case["base64"]), validate=True)
    record = case["record"]
    return None if record is None else record.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedField:
    """One field of a column `c`; `gives` is what Spark makes of it, None if it is refused."""

    type: str
    field: str
    gives: str | None

    def __str__(self) -> str:
        return f"{self.type} {self.field[:60]}"


def accepted_fields() -> tuple[AcceptedField, ...]:
    groups = YAML(typ="safe", pure=True).load(CSV_TABLE.read_text())
    return tuple(
        AcceptedField(type=str(group["type"]), field=str(case["field"]), gives=case.get("gives"))
        for group in groups
        for case in group["cases"]
    )
