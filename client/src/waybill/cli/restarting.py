"""The command that restarts a pipeline, or lets its stages begin elsewhere."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from waybill.cli.asking import require_yes
from waybill.cli.changes import change
from waybill.cli.faults import print_faults
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, WaitOption
from waybill.models import Fault, Operation, RestartMode, RestartState

if TYPE_CHECKING:
    from waybill.sync.client import Client

RewindOption = Annotated[
    bool, typer.Option("--yes", "-y", help="do not ask before rows are written again, or skipped")
]
REWIND_NOT_CONFIRMED = "rewind_not_confirmed"
BEGINNINGS = ("earliest", "latest")
REFUSED_WITHIN_S = 10.0


def restart(  # noqa: PLR0917 - options of a command line
    name: PipelineArgument,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="where stages begin: earliest, latest, TIME, 7 days ago, or"
            " TOPIC[PARTITION]=OFFSET,…; in topics that were created again earliest or latest",
        ),
    ] = None,
    state: Annotated[
        RestartState | None,
        typer.Option(
            "--state",
            case_sensitive=False,
            help="fresh lets stages begin again where the manifest says; resume is as without it:"
            " they continue where their sinks are",
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="the only stage that begins there")
    ] = None,
    yes: RewindOption = False,  # noqa: FBT002 - a flag of the command line
    mode: Annotated[
        RestartMode,
        typer.Option(
            "--mode",
            case_sensitive=False,
            help="safe lets the running batch end first, and goes on with a warning if it fails;"
            " force kills the driver at once, and the next one repeats that batch",
        ),
    ] = "safe",
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Restart a pipeline, also a stopped or failed one; it continues where its sinks are.

    A paused pipeline stays paused: its new driver begins no batch before `waybill resume`.

    If it does not run within --timeout, it is reported as accepted and goes on: `waybill wait
    PIPELINE` then waits for it, as after waybill apply.

    After a topic was deleted and created again, --from says where to start in the new one. What was
    not processed of the old one ends as lost; what was written is not written again.

    Without such a topic, stages go back there, and write rows again; tokens keep their outcomes. Or
    they go forward: what they have not read is skipped, and its tokens end lost. It says how many
    records come again and what is skipped, and asks; without a terminal it refuses, unless --yes is
    given. --state fresh goes back to where the manifest says that each stage begins.

    \b
    Example:
      waybill restart orders
      waybill restart orders --from earliest
      waybill restart orders --from 2026-11-01T00:00:00Z --stage enrich
      waybill restart orders --from "7 days ago"
      waybill restart orders --from orders.in[0]=120,orders.in[1]=80 --yes
      waybill restart orders --from latest
      waybill restart orders --state fresh
      waybill restart orders --mode force

    \b
    Exit codes: 0 it has a new driver, or accepted · 1 error · 2 usage ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """

    begin = beginning(start_from)
    if begin is not None and state is not None:
        raise typer.BadParameter("take --from WHERE, --state fresh, or neither to resume")
    rewinds = begin is not None or state == "fresh"
    if stage is not None and not rewinds:
        raise typer.BadParameter(
            f"--stage {stage} needs --from WHERE or --state fresh; without it, all is restarted"
        )

    def ask(client: "Client") -> Operation:
        def send(*, confirmed: bool) -> Operation:
            return client.restart(name, begin, mode=mode, state=state, stage=stage, yes=confirmed)

        return send_confirmed(client, name, send, yes=yes) if rewinds else send(confirmed=yes)

    change(ask, timeout, output, must_end=wait)


def beginning(text: str | None) -> str | None:
    """Return where to begin, as Waybill reads it: words in lower case."""
    word = (text or "").lower()
    return word if word in BEGINNINGS else text


class SendsRewind(Protocol):
    def __call__(self, *, confirmed: bool) -> Operation: ...


def send_confirmed(client: "Client", name: str, send: SendsRewind, *, yes: bool) -> Operation:
    """Send a change that lets stages begin elsewhere, after the user has confirmed it."""
    if yes:
        return send(confirmed=True)
    sent, again = _send_or_explain(client, lambda: send(confirmed=False))
    if sent is not None:
        return sent
    print_faults(again, name)
    require_yes("records are written again, or skipped", "Do it?", "--yes does it")
    return send(confirmed=True)


def _send_or_explain(
    client: "Client", send: Callable[[], Operation]
) -> tuple[Operation | None, tuple[Fault, ...]]:
    """Send a change. If it needs to be confirmed, return no operation, and what comes again.

    That is known at once unless Kafka is slow. So long nothing is printed, so it is not for long.
    """
    sent = send()
    if sent.pending:
        sent = client.operation(sent.id, wait_s=REFUSED_WITHIN_S)
    return (None, sent.errors) if sent.problem == REWIND_NOT_CONFIRMED else (sent, ())
