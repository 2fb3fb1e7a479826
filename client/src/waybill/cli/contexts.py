"""The commands `context list, use, add, remove`: several Waybills, by name."""

import os
from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import command_group
from waybill.contexts import LOCAL, Contexts, read_contexts, write_contexts
from waybill.errors import WaybillError
from waybill.target import find_target

contexts = command_group("Name the Waybills that you work with, and say which one is in use.")

HEADER = ("", "NAME", "URL")


def list_names() -> list[str]:
    """Return the names for shell completion, which must not fail."""
    try:
        return [LOCAL, *sorted(read_contexts(os.environ).urls)]
    except WaybillError:
        return []


def check_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter(f"{url!r} should begin with http:// or https://")
    return url.rstrip("/")


NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="the context's name", autocompletion=list_names),
]


@contexts.command("list")
def list_contexts(output: OutputOption = Form.TABLE) -> None:
    """List the contexts; a star marks the one in use.

    `local` is always there: the stack of this folder or of one above.

    \b
    Example:
      waybill context list

    Exit codes: 0 ok · 1 error
    """
    found = read_contexts(os.environ)
    if output is Form.JSON:
        render.as_json({"used": found.used, "contexts": dict(sorted(found.urls.items()))})
        return
    rows = [(LOCAL, "the stack of this folder or of one above"), *sorted(found.urls.items())]
    marked = [("*" if name == found.used else "", name, url) for name, url in rows]
    render.data(render.table(marked, header=HEADER))


@contexts.command("use")
def use(name: NameArgument) -> None:
    """Use this context from now on, in every folder.

    WAYBILL_URL, WAYBILL_CONTEXT and --context still win over it.

    \b
    Example:
      waybill context use staging
      waybill context use local

    Exit codes: 0 it is in use · 1 error, also when there is no such context
    """
    found = read_contexts(os.environ)
    found.url_of(name, "as given")
    write_contexts(found.use(name), os.environ)
    target = find_target(None, os.environ, Path.cwd())
    render.talk(f"talking to {target.url} ({target.source})")


@contexts.command("add")
def add(
    name: NameArgument,
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="as in http://127.0.0.1:8080", callback=check_url),
    ],
) -> None:
    """Name a Waybill, or give a name another URL.

    \b
    Example:
      waybill context add staging https://waybill.staging.example

    Exit codes: 0 added · 1 error · 2 usage
    """
    if name == LOCAL or not name.strip():
        raise typer.BadParameter(f"{name!r} has a meaning of its own: choose another name")
    write_contexts(read_contexts(os.environ).with_url(name, url), os.environ)
    render.talk(f"context {name} is {url}: `waybill context use {name}`, or --context {name}")


@contexts.command("remove")
def remove(name: NameArgument) -> None:
    """Forget a context. If it was in use, `local` is from now on.

    \b
    Example:
      waybill context remove staging

    Exit codes: 0 removed · 1 error, also when there is no such context
    """
    found = read_contexts(os.environ)
    if found.url_of(name, "as given") is None:
        raise typer.BadParameter(f"{LOCAL} is always there")
    left: Contexts = found.without(name)
    write_contexts(left, os.environ)
    render.talk(f"context {name} is forgotten; {left.used} is in use")
