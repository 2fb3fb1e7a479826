"""The options that every command has: each may be before or after the command's name."""

import os
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from waybill.cli import render
from waybill.cli.commands import LazyCommands
from waybill.cli.contexts import check_url, list_names
from waybill.cli.session import CommandGroup
from waybill.contexts import CONTEXT_VARIABLE
from waybill.target import URL_VARIABLE

if TYPE_CHECKING:
    from typer._click import Command


def _be_quiet(context: typer.Context, quiet: bool) -> None:
    if quiet or context.parent is None:
        render.be_quiet(quiet)


def _use_context(name: str | None) -> None:
    """Use the context instead of all that the environment and the file say."""
    if name is not None:
        os.environ.pop(URL_VARIABLE, None)
        os.environ[CONTEXT_VARIABLE] = name


def _use_url(url: str | None) -> None:
    if url is not None:
        os.environ[URL_VARIABLE] = check_url(url)


QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="no progress and no talk: answers and errors only",
        callback=_be_quiet,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="talk to this one of `waybill context list`",
        autocompletion=list_names,
        callback=_use_context,
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="talk to the Waybill there", callback=_use_url),
]


class RootGroup(CommandGroup):
    """The command `waybill`: it has all commands, and adds its options to each."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as of its parent
        super().__init__(**attributes)
        shared = [copy(option) for option in self.params if not option.is_eager]
        for option in shared:
            option.expose_value = False  # its callback does all
        self.commands = LazyCommands(partial(_hand_down, shared))  # type: ignore[assignment] # read only

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return [*self.commands]


def _hand_down(options: Sequence[Any], command: "Command") -> None:
    """Add the options to a command, and to all in it, that do not name the option themselves."""
    named = {param.name for param in command.params}
    command.params.extend(option for option in options if option.name not in named)
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _hand_down(options, each)
