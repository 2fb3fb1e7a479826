"""The commands that change pipelines: apply, rollback, start, stop, delete."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli.asking import require_yes
from waybill.cli.deleting import ask_to_delete
from waybill.cli.diff import ask_first, show
from waybill.cli.faults import exit_on_faults, print_faults
from waybill.cli.manifest_files import ManifestOption, name_of, read_manifest
from waybill.cli.operations import finish
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import (
    PipelineArgument,
    TimeoutOption,
    WaitOption,
    connect,
    connect_to_change,
)
from waybill.errors import Conflict
from waybill.manifest_versions import earlier_of
from waybill.models import Operation, StopMode

if TYPE_CHECKING:
    from waybill.sync.client import Client

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="say what would change, as waybill diff, and do nothing")
]
YesOption = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help="do not ask before rows are written again, tokens end lost, or a sink writes where"
        " another pipeline writes",
    ),
]
DeleteOption = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]
TARGET_SHARED = "target_shared"


def apply(  # noqa: PLR0917 - options of a command line
    file: ManifestOption,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag of the command line
    yes: YesOption = False,  # noqa: FBT002 - as dry_run
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Create or change a pipeline from a manifest, and start it.

    Waits until it runs. If that takes longer than --timeout, it is reported as accepted and goes
    on. `waybill wait PIPELINE` then waits for this change first. Another user, or another machine,
    does not know of it: there use `waybill wait OPERATION`, with the operation that apply prints.
    What is wrong is printed as file:line:column with a hint, also what only Spark finds (in SQL, in
    a sink's table). A manifest that is refused changes nothing.

    Prints on stderr what will change of a pipeline that exists, after a check of up to a minute. If
    the change writes rows again, or lets tokens end lost, it asks first; without a terminal it
    refuses, unless --yes is given. If the check cannot be made, --yes is needed too. It compares
    with the pipeline as it is now: what was removed earlier is not known. So a stage that is added
    again writes its rows again without a question.

    It also asks if a sink would write to a topic or table of another pipeline, unless both sinks
    say `shared: true`. If both upsert by other keys, it always refuses.

    \b
    Example:
      waybill apply -f examples/orders.yaml && waybill wait orders

    \b
    Exit codes: 0 applied, or accepted · 1 error, or answered with no · 2 usage, or --yes is
      needed · 4 not done in time: with --wait, or where the change cannot be remembered
    """
    text, name = read_manifest(file), name_of(file)
    if dry_run:
        with connect() as client:
            show(client, text, name, output, allow_shared=yes)
    else:
        _ask_and_apply(text, name, timeout, output, yes=yes, wait=wait)


def rollback(  # noqa: PLR0917 - options of a command line
    name: PipelineArgument,
    generation: Annotated[
        int | None,
        typer.Option(
            "--generation", min=1, metavar="N", help="the manifest of this one, not the last before"
        ),
    ] = None,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag of the command line
    yes: YesOption = False,  # noqa: FBT002 - as dry_run
    wait: WaitOption = False,  # noqa: FBT002 - as dry_run
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Apply an earlier manifest of a pipeline again, as a new generation.

    It is what `waybill get manifest NAME --generation N` prints, and it is applied as by `waybill
    apply`: the changes are shown first, and it asks before rows are written again or tokens end
    lost. Rows that are in sinks stay there. The newest ten manifests before the present one are
    kept.

    \b
    Example:
      waybill rollback orders --dry-run
      waybill rollback orders && waybill wait orders

    \b
    Exit codes: 0 applied, or accepted · 1 error, or answered with no · 2 usage, or --yes is
      needed · 4 not done in time: with --wait, or where the change cannot be remembered
    """
    with connect() as client:
        earlier = earlier_of(name, client.manifests(name), generation)
        label = f"{name}, generation {earlier.generation}"
        if dry_run:
            show(client, earlier.text, label, output, allow_shared=yes)
            return
    _ask_and_apply(earlier.text, label, timeout, output, yes=yes, wait=wait)


def _ask_and_apply(
    text: str, label: str, timeout: float, output: Form, *, yes: bool, wait: bool
) -> None:
    """Show what the manifest changes, ask if that cannot be undone, and apply it."""

    def ask(client: "Client") -> Operation:
        ask_first(client, text, label, output, yes=yes)
        return _apply(client, text, label, yes=yes)

    with exit_on_faults(label):
        change(ask, timeout, output, label, must_end=wait)


def _apply(client: "Client", text: str, file: str, *, yes: bool) -> Operation:
    """Apply the manifest; ask if a sink would write to a topic or table of another pipeline."""
    try:
        return client.apply(text, allow_shared=yes)
    except Conflict as conflict:
        if yes or conflict.slug != TARGET_SHARED:
            raise
        print_faults(conflict.errors, file)
    hint = "say `shared: true` on both sinks, or --yes applies it all the same"
    require_yes("this writes where another pipeline writes", "Apply it?", hint)
    return client.apply(text, allow_shared=True)


def start(
    name: PipelineArgument,
    stage: Annotated[
        str | None,
        typer.Option(
            "--stage", metavar="NAME", help="start only this one of the stages that have failed"
        ),
    ] = None,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Start a stopped pipeline; it continues where it stopped.

    If single stages of a pipeline that runs have failed, these start, each with a fresh budget of
    dead letters, and no other stage stops. It says how many records each had put aside.

    Waits until it runs. If that takes longer than --timeout, it is reported as accepted and goes
    on: `waybill wait PIPELINE` then waits for it, as after waybill apply.

    \b
    Example:
      waybill start orders && waybill wait orders
      waybill start orders --stage refunds

    \b
    Exit codes: 0 it runs, or accepted · 1 error ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """
    change(lambda client: client.start(name, stage=stage), timeout, output, must_end=wait)


def stop(
    name: PipelineArgument,
    mode: Annotated[
        StopMode,
        typer.Option(
            "--mode",
            case_sensitive=False,
            help="checkpoint lets the running batch end, for at most 2 minutes; drain lets all that"
            " the inputs contain now reach every sink, for at most 5; force kills the driver at"
            " once, and the next run repeats that batch. graceful is drain, and immediate is force",
        ),
    ] = "checkpoint",
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Stop a pipeline; its tokens can still be asked about. Each row is in its sinks once.

    A stop that goes on is overtaken by a stronger one. `waybill describe` shows when it becomes a
    stronger one by itself.

    \b
    Example:
      waybill stop orders && waybill wait orders --for Stopped
      waybill stop orders --mode drain --timeout 300

    \b
    Exit codes: 0 stopped · 1 error · 4 not done in time
    """
    change(lambda client: client.stop(name, mode), timeout, output)


def delete(
    name: PipelineArgument,
    yes: DeleteOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Delete a pipeline; its topics and tables stay.

    Prints on stderr which tokens end lost, pipeline_deleted, and which topics and tables stay, and
    asks. Without a terminal it refuses, unless --yes is given.

    \b
    Example:
      waybill delete orders
      waybill delete orders --yes

    Exit codes: 0 deleted · 1 error · 2 usage, or --yes is needed · 4 not done in time
    """

    def ask(client: "Client") -> Operation:
        ask_to_delete(client, name, output, yes=yes)
        return client.delete(name)

    change(ask, timeout, output)


def change(
    ask: "Callable[[Client], Operation]",
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool = True,
) -> None:
    """Ask for a change of a pipeline, and follow it to its end."""
    with connect_to_change() as client:
        finish(client, ask(client), timeout, output, file, must_end=must_end)
