"""The formats that `waybill send` reads: a table, and which row a source is in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import BinaryIO

import typer

from waybill.cli.sending.avro_blocks import read_avro
from waybill.cli.sending.csv_rows import check_csv, read_csv
from waybill.cli.sending.json_values import read_values
from waybill.cli.sending.lines import read_ndjson, read_raw
from waybill.cli.sending.units import Units

GZIP_ENDING = ".gz"


class FormatName(StrEnum):
    """A format that `--format` accepts."""

    NDJSON = "ndjson"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    AVRO = "avro"
    RAW = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format that `waybill send` reads.

    `noun`: what is counted in it. `takes`: its options, by the names that HTTP has for them;
    `usual`: the defaults that differ from HTTP. `reasons_have_line`: Waybill's reasons name the
    line already.
    """

    endings: tuple[str, ...]
    media_type: str
    read: Callable[[BinaryIO, Mapping[str, str]], Units]
    noun: str = "record"
    takes: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, str]], None] = lambda _: None
    usual: Mapping[str, str] = field(default_factory=dict)
    reasons_have_line: bool = False

    def options(self, options: Mapping[str, str | None]) -> dict[str, str]:
        """Return the options that apply; one that the format does not have is a usage error."""
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            if name not in self.takes:
                message = f"does not go with {self.media_type}: `--format` says what the source is"
                raise typer.BadParameter(message, param_hint=f"--{PARAMETERS.get(name, name)}")
        applied = {**self.usual, **given}
        try:
            self.check(applied)
        except (ValueError, LookupError) as error:
            raise typer.BadParameter(str(error)) from error
        return applied

    def options_to_send(self, options: Mapping[str, str], line: int) -> dict[str, str]:
        """Return the options of a request; `line` is the line of its first record."""
        if not self.reasons_have_line:
            return dict(options)
        kept = {name: value for name, value in options.items() if name != "encoding"}
        return {**kept, "line": str(line)}


OF_CSV = frozenset({"delimiter", "quote", "escape", "header", "null", "encoding"})
PARAMETERS = {"header": "no-header", "key": "record-key"}
FORMATS = {
    FormatName.NDJSON: Format(
        endings=(".ndjson", ".jsonl"),
        media_type="application/x-ndjson",
        read=read_ndjson,
        noun="line",
    ),
    FormatName.JSON: Format(endings=(".json",), media_type="application/json", read=read_values),
    FormatName.CSV: Format(
        endings=(".csv",),
        media_type="text/csv",
        read=read_csv,
        noun="line",
        takes=OF_CSV,
        check=check_csv,
        reasons_have_line=True,
    ),
    FormatName.TSV: Format(
        endings=(".tsv", ".tab"),
        media_type="text/csv",
        read=read_csv,
        noun="line",
        takes=OF_CSV,
        check=check_csv,
        usual={"delimiter": "tab"},
        reasons_have_line=True,
    ),
    FormatName.AVRO: Format(
        endings=(".avro",), media_type="application/vnd.apache.avro", read=read_avro
    ),
    FormatName.RAW: Format(
        endings=(".bin", ".raw"),
        media_type="application/octet-stream",
        read=read_raw,
        takes=frozenset({"key"}),
    ),
}
BY_ENDING = {ending: name for name, each in FORMATS.items() for ending in each.endings}


def format_of(path: str) -> FormatName:
    """Return the format that the name ends with; a name without an ending is NDJSON."""
    name = PurePath(path).name
    ending = PurePath(name.removesuffix(GZIP_ENDING)).suffix.lower()
    found = BY_ENDING.get(ending) if ending else FormatName.NDJSON
    if found is None:
        message = f"{name} is in no known format by its ending: add --format {'|'.join(FormatName)}"
        raise typer.BadParameter(message, param_hint="FILE")
    return found
