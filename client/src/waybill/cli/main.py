"""The command `waybill`: its help, and the options that it shares with its commands."""

from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from waybill.cli.options import ContextOption, QuietOption, RootGroup, UrlOption
from waybill.cli.render import Form, OutputOption, data
from waybill.version import client_version

completion_init()  # else done by options --install-completion, which write into users' files

app = typer.Typer(
    name="waybill",
    cls=RootGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        data([f"waybill {client_version()}"])
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option("--version", help="of this client", is_eager=True, callback=_say_version),
]


@app.callback()
def waybill(
    output: OutputOption = Form.TABLE,
    quiet: QuietOption = False,  # noqa: FBT002 - a flag of the command line
    context: ContextOption = None,
    target_url: UrlOption = None,
    show_version: VersionOption = False,  # noqa: FBT002 - as quiet
) -> None:
    """Know when data put into Kafka has really arrived.

    \b
    The first minutes:
      waybill demo
      waybill up --detach
      waybill apply -f examples/orders.yaml && waybill wait orders
      waybill send orders orders '{"order_id": 1, "amount": 12.5}' --wait 60
      waybill down

    It talks to the first of these that there is: --url or --context, WAYBILL_URL, WAYBILL_CONTEXT,
    the context in use, the stack of this folder or one above, http://127.0.0.1:8080. On the last,
    which nobody has named, nothing is changed before you have said yes.
    Answers go to stdout, all else to stderr; -o json for scripts; NO_COLOR is respected.
    -o, -q, --context and --url may be before or after the name of any command; the last wins.
    `waybill doctor` says what is wrong.

    \b
    Exit codes of every command:
      0 complete, or done · 1 error · 2 usage · 3 dead-lettered or lost ·
      4 still in progress · 5 unknown now · 130 Ctrl-C
    """
