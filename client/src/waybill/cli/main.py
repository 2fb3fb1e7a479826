"""The command `waybill`: names its commands, in the order a newcomer meets them."""

from typing import Annotated

import typer

from waybill.cli import (
    changes,
    check,
    completion,
    console,
    convert,
    demo,
    diff,
    doctor,
    events,
    init,
    logs,
    maintain,
    pipelines,
    send,
    stack,
    versions,
    watches,
)
from waybill.cli.contexts import contexts
from waybill.cli.dlq import dlq
from waybill.cli.keys import keys
from waybill.cli.options import ContextOption, QuietOption, RootGroup, UrlOption
from waybill.cli.render import Form, OutputOption, data
from waybill.cli.tokens import tokens
from waybill.version import client_version

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
    -o, -q, --context and --url may stand before or behind the name of any command; the last wins.
    `waybill doctor` says what is wrong.

    \b
    Exit codes of every command:
      0 complete, or done · 1 error · 2 usage · 3 dead-lettered or lost ·
      4 still in progress · 5 unknown now · 130 Ctrl-C
    """


for command in (
    demo.demo,
    stack.up,
    stack.down,
    stack.ps,
    stack.env,
    init.init,
    convert.convert,
    changes.apply,
    check.check,
    diff.diff,
    pipelines.wait,
    pipelines.get,
    pipelines.describe,
    events.events,
    changes.start,
    changes.stop,
    changes.restart,
    changes.delete,
    maintain.maintain,
    send.send,
    watches.watch,
    watches.watches,
    watches.unwatch,
    watches.redeliver,
    doctor.doctor,
    logs.logs,
    completion.completion,
):
    app.command()(command)
app.command("open")(console.open_console)
app.add_typer(tokens, name="token")
app.add_typer(dlq, name="dlq")
app.add_typer(keys, name="keys")
app.add_typer(contexts, name="context")
app.command()(versions.version)
