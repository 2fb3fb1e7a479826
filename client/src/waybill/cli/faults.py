"""Prints what is wrong with a manifest, each fault with its place in the file."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.errors import ProblemError
from waybill.models import Fault


def print_faults(faults: Iterable[Fault], file: str) -> None:
    render.complain(*(render.fault_text(fault, file) for fault in faults))


@contextmanager
def exit_on_faults(file: str) -> Iterator[None]:
    """Print the faults for which a request is refused, and end with an error."""
    try:
        yield
    except ProblemError as problem:
        if not problem.errors:
            raise
        print_faults(problem.errors, file)
        raise typer.Exit(ExitCode.ERROR) from problem
