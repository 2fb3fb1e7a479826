"""The commands about watches: get an event when a token is final, instead of asking."""

from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import connect, connect_to_change, not_empty
from waybill.watches import Watch

WatchArgument = Annotated[
    str, typer.Argument(metavar="WATCH", help="as `waybill watch` prints it", callback=not_empty)
]


def labels_of(given: list[str]) -> dict[str, str]:
    """Return the labels by name; a text that is no NAME=VALUE is a usage error."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is no NAME=VALUE", param_hint="--label")
        found[name] = value
    return found


LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="of the watch; several may be given"),
]


TokenArgument = Annotated[
    str, typer.Argument(metavar="TOKEN", help="as `waybill send` prints it", callback=not_empty)
]
SinkOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="that is waited for, and no other; several may be given"),
]
ThroughOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PIPELINE",
        help="that it is to pass, too, and reads what the pipeline before writes; several may"
        " be given, in order, and --sink is of the last",
    ),
]
WebhookOption = Annotated[
    str | None, typer.Option(metavar="URL", help="that the event is sent to, too, signed")
]
SecretOption = Annotated[
    str | None,
    typer.Option(
        "--webhook-secret",
        metavar="TEXT",
        envvar="WAYBILL_WEBHOOK_SECRET",
        help="by which it is signed; without one, a secret is made and printed",
    ),
]


def watch(  # noqa: PLR0917 - options of a command line
    token: TokenArgument,
    label: LabelOption = None,
    sink: SinkOption = None,
    through: ThroughOption = None,
    webhook: WebhookOption = None,
    secret: SecretOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Watch a token: an event is written to waybill.status when the token is final.

    The event has the outcome and the labels. `waybill events --follow` shows it, and each consumer
    of the topic gets it. For a token that is final already it is written at once; for one that
    expires it says so.

    \b
    Example:
      waybill watch $(waybill send orders orders '{"order_id": 1}') --label batch=7
      waybill watch $TOKEN --webhook https://hooks.example/orders
      waybill watch $TOKEN --through invoices

    Exit codes: 0 the event will be written · 1 error, also for a token that is none of ours
    """
    labels = labels_of(label or [])
    with connect_to_change() as client:
        signed_by = None if webhook is None else secret
        found = client.watch(
            token,
            labels=labels,
            sinks=sink or (),
            through=through or (),
            webhook=webhook,
            secret=signed_by,
        )
    if output is Form.JSON:
        made = {} if found.secret is None else {"secret": found.secret}
        render.as_json({**found.raw, **made})
        return
    made_here = [] if found.secret is None else [f"secret {found.secret}"]
    render.data([render.words(found.id, found.state), *made_here])


def watches(output: OutputOption = Form.TABLE) -> None:
    """List watches, the newest first: open ones, and those with an event in the last month.

    \b
    Example:
      waybill watches
      waybill watches -o json | jq '.items[] | select(.state == "open") | .id'

    Exit codes: 0 ok · 1 error
    """
    with connect() as client:
        found = [*client.watches()]
    if output is Form.JSON:
        render.as_json({"items": [each.raw for each in found]})
        return
    rows = [[each.id, _state(each), _when(each), _labels(each), _webhook(each)] for each in found]
    render.data(render.table(rows, header=["WATCH", "STATE", "SINCE", "LABELS", "WEBHOOK"]))


def unwatch(id: WatchArgument, output: OutputOption = Form.TABLE) -> None:
    """End a watch: its event is not written, and it is not listed any more.

    \b
    Example:
      waybill unwatch 0c1e5c1d7d6a4d2f8f0a4b8f2b7f9f63

    Exit codes: 0 ended · 1 error, also when there is no such watch
    """
    with connect_to_change() as client:
        _show(client.unwatch(id), output)


def redeliver(id: WatchArgument, output: OutputOption = Form.TABLE) -> None:
    """Send the event of a watch to its webhook again, at once.

    It is then tried for another 24 hours. `waybill watches` shows how far it is.

    \b
    Example:
      waybill redeliver 0c1e5c1d7d6a4d2f8f0a4b8f2b7f9f63

    Exit codes: 0 it will be sent · 1 error, also if it has no webhook or is still open
    """
    with connect_to_change() as client:
        _show(client.redeliver(id), output)


def _show(found: Watch, output: Form) -> None:
    if output is Form.JSON:
        render.as_json(found.raw)
    else:
        render.data([render.words(found.id, found.state)])


def _state(found: Watch) -> str:
    return found.state if found.ended_as is None else f"{found.state}: {found.ended_as}"


def _when(found: Watch) -> str:
    moment = found.reported_at or found.created_at
    return "" if moment is None else moment.isoformat(timespec="seconds")


def _labels(found: Watch) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(found.labels.items()))


def _webhook(found: Watch) -> str:
    hook = found.webhook
    if hook is None:
        return ""
    tried = (
        f" ({render.count(hook.attempts, 'attempt')}: {hook.last_error})" if hook.last_error else ""
    )
    return f"{hook.url}{tried}"
