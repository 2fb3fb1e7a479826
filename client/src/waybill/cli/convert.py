"""The command convert: prints a manifest made of what was written for another system."""

from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.faults import exit_on_faults
from waybill.cli.init import valid_name
from waybill.cli.manifest_files import name_of, read_text
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import connect
from waybill.first_manifest import name_for


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="SQL; - for stdin")],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="of the pipeline; else made of the file's", callback=valid_name
        ),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Print a manifest made of the tables in a SQL file.

    Each CREATE TABLE becomes an input, as it was written, and a stage that writes its rows into the
    lakehouse. If Waybill cannot keep something, it is reported as file:line:column, and no manifest
    is printed.

    \b
    Example:
      waybill convert tables.sql > tables.yaml && waybill apply -f tables.yaml

    \b
    Exit codes: 0 printed · 1 errors · 2 usage
    """
    text, shown = read_text(file, "FILE"), name_of(file)
    with exit_on_faults(shown), connect() as client:
        manifest = client.convert(text, name or name_for(file.stem))
    if output is Form.JSON:
        render.as_json({"manifest": manifest})
    else:
        render.exactly(manifest)
