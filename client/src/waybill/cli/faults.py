"""Prints what is wrong with a manifest, each fault with its place in the file."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.errors import ProblemError
from waybill.models import Fault


def print_faults(faults: Iterable[Fault], file: str) -> None:
    """Print each fault with its place, and once the hint that several in a row share."""
    found = [*faults]
    hints = [fault.hint for fault in found[1:]]
    for index, hint in enumerate(hints):
        if found[index].hint == hint:
            found[index] = replace(found[index], hint=None)
    render.complain(*(render.fault_text(fault, file) for fault in found))


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
