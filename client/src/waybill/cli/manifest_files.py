"""The manifest that a command is given: a file, or stdin."""

import sys
from pathlib import Path
from typing import Annotated

import typer

STDIN = "-"

ManifestOption = Annotated[
    Path,
    typer.Option("-f", "--file", metavar="FILE", help="the manifest, YAML or JSON; - for stdin"),
]


def read_manifest(file: Path) -> str:
    return read_text(file, "--file")


def read_text(file: Path, option: str) -> str:
    """Read a file or stdin; errors name `option`, by which it was given on the command line."""
    try:
        return sys.stdin.read() if str(file) == STDIN else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
    except UnicodeDecodeError:
        message = f"{file} is not text in UTF-8"
    raise typer.BadParameter(message, param_hint=option)


def name_of(file: Path) -> str:
    """Return the name of the file, as errors show it."""
    return "<stdin>" if str(file) == STDIN else str(file)
