"""The command `open`: the console in a browser."""

import os
import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import list_pipelines, not_empty
from waybill.target import find_target
from waybill.tokens import TOKEN


def open_console(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="PIPELINE|TOKEN",
            help="which to show; without one all pipelines",
            callback=not_empty,
            autocompletion=list_pipelines,
        ),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Open the console: all pipelines, one of them, or the path of a token.

    Its address is printed too: where no browser can be opened, and for colleagues.

    \b
    Example:
      waybill open
      waybill open orders
      waybill open $(waybill send orders orders '{"order_id": 1, "amount": 12.5}')

    Exit codes: 0 ok, also when there is no browser · 1 error · 2 usage
    """
    url = find_target(None, os.environ, Path.cwd()).url + path_of(what)
    if output is Form.JSON:
        render.as_json({"url": url})
    else:
        render.data([url])
    if not webbrowser.open(url):
        render.talk("there is no browser here: open this address in one")


def path_of(what: str | None) -> str:
    if what is None:
        return "/"
    return f"/t/{quote(what)}" if TOKEN.fullmatch(what) else f"/p/{quote(what, safe='')}"
