"""What the commands share: the connection, common arguments, the one boundary of errors."""

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from waybill.cli import exits, render
from waybill.cli.asking import require_yes
from waybill.errors import WaybillError
from waybill.target import URL_VARIABLE, Target, find_api_key, find_target

if TYPE_CHECKING:
    import typer.models

    from waybill.sync.client import Client
    from waybill.sync.connection import Connection

COMPLETION_TIMEOUT_S = 1.0
ASK_TIMEOUT_S = 6.0  # for all services: the gateway gives each 5
MANIFEST_WORD = "manifest"  # what `waybill get` accepts before a name


def not_empty(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise typer.BadParameter("is empty")
    return value


def list_pipelines() -> list[str]:
    """Return pipelines for shell completion, which must neither fail nor keep anybody waiting."""
    with suppress(WaybillError), connect(COMPLETION_TIMEOUT_S) as client:
        return [pipeline.name for pipeline in client.pipelines()]
    return []


def list_inputs(context: typer.Context) -> list[str]:
    """Return the inputs of the pipeline that is already typed; as careful as `list_pipelines`."""
    with suppress(WaybillError), connect(COMPLETION_TIMEOUT_S) as client:
        return [found.name for found in client.pipeline(context.params["pipeline"]).inputs]
    return []


def list_after_manifest(context: typer.Context) -> list[str]:
    """Return the pipelines after `get manifest`; elsewhere no further name can be typed."""
    return list_pipelines() if context.params.get("name") == MANIFEST_WORD else []


PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="the pipeline's name",
        callback=not_empty,
        autocompletion=list_pipelines,
    ),
]

GenerationOption = Annotated[
    int | None,
    typer.Option(
        "--generation",
        min=1,
        metavar="N",
        help="of the pipeline at least, as `waybill apply` printed it: waits until it is known",
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="end with 4 when it is not done in this time")
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=0.0, metavar="SECONDS", help="how long to wait at most")
]
InputArgument = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="the input's name",
        callback=not_empty,
        autocompletion=list_inputs,
    ),
]


class CommandGroup(TyperGroup):
    """A group of commands that prints an error of the SDK and ends with the exit code of the
    error."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except WaybillError as error:
            render.failure(error)
            raise typer.Exit(exits.of_error(error)) from error


def command_group(help: str) -> typer.Typer:
    """Return a group of commands, to which modules add theirs."""
    return typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None, help=help)


def direct(timeout_s: float) -> "Connection":
    """Return a connection for questions that the SDK has no method for."""
    from waybill.sync.connection import Connection

    target = find_target(None, os.environ, Path.cwd())
    return Connection(target, timeout_s=timeout_s, api_key=find_api_key(None, os.environ))


def connect(timeout_s: float | None = None) -> "Client":
    """Return a client for the Waybill in use; HTTP is imported only now."""
    from waybill.sync.client import Client
    from waybill.waiting import TIMEOUT_S

    return Client(timeout_s=TIMEOUT_S if timeout_s is None else timeout_s)


def connect_to_change() -> "Client":
    """Return a client as `connect` does, for a command that changes something.

    If nobody has named a Waybill, a person must say that the one on the usual port is meant. Else
    Exit is raised.
    """
    target = find_target(None, os.environ, Path.cwd())
    if target.guessed:
        _ask_for(target)
    return connect()


def _ask_for(target: Target) -> None:
    from waybill.questions import Question

    with closing(direct(ASK_TIMEOUT_S)) as connection:
        found = connection.ask(Question(method="GET", path="/version")).text("version")
    what = f"no stack runs in this folder or above, but Waybill {found} answers at {target.url}"
    hint = f"if it is meant, add --url {target.url}, or set {URL_VARIABLE}"
    require_yes(what, "Is that one meant?", hint)
