"""Asks the user before a command does what cannot be undone."""

import sys

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode


def has_terminal() -> bool:
    """Return True if a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(what: str, question: str, hint: str) -> None:
    """Ask on a terminal; elsewhere end with a usage error and `hint`, which names the option.

    Raises Abort when the answer is no.
    """
    if has_terminal():
        typer.confirm(f"{what[:1].upper()}{what[1:]}. {question}", abort=True, err=True)
        return
    render.complain(
        render.words("error:", f"{what}, and there is no terminal to ask on"),
        render.words("hint:", hint),
    )
    raise typer.Exit(ExitCode.USAGE)
