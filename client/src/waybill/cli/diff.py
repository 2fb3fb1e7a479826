"""The command `diff`: what a manifest would change; and what `apply` asks before it does so."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.check import CHECK_WAIT_S
from waybill.cli.exits import ExitCode
from waybill.cli.faults import exit_on_faults
from waybill.cli.manifest_files import ManifestOption, name_of, read_manifest
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import TimeoutOption, connect
from waybill.errors import NotFound, Renamed, Unreachable, WaybillError
from waybill.findings import Change, Findings
from waybill.manifests import earlier_name, manifest_name

if TYPE_CHECKING:
    from waybill.sync.client import Client

NOTHING = "nothing would change"
NOT_KNOWN = "what would change is not known now"


def diff(
    file: ManifestOption,
    timeout: TimeoutOption = CHECK_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what apply would change of a pipeline: stages, sinks, columns. Nothing is changed.

    One line for each change; it says which stages continue, which write rows again, and where
    tokens of rows that were not processed end lost. What apply would refuse is printed as check
    prints it.

    \b
    Example:
      waybill diff -f examples/orders.yaml

    \b
    Exit codes: 0 apply would accept it, whether something would change or not · 1 errors ·
      2 usage · 4 not checked in time · 5 what would change is not known now
    """
    text, name = read_manifest(file), name_of(file)
    with connect() as client:
        show(client, text, name, output, timeout=timeout)


def show(
    client: "Client",
    text: str,
    file: str,
    output: Form,
    *,
    timeout: float = CHECK_WAIT_S,
    allow_shared: bool = False,
) -> None:
    """Print what would change, as an answer; nothing is changed."""
    with exit_on_faults(file), render.busy(f"comparing {file}"):
        found = client.check(text, allow_shared=allow_shared, timeout_s=timeout)
        exists = found.good and (found.changes is not None or _known(client, text))
    if output is Form.JSON:
        render.as_json(found.raw)
    else:
        render.data(render.fault_text(fault, file) for fault in found.errors)
        render.data(f"{file}: warning: {warning}" for warning in found.warnings)
        render.data(_lines(found, text, exists=exists))
    if not found.good:
        raise typer.Exit(ExitCode.ERROR)
    if found.changes is None and exists:
        render.complain(f"{NOT_KNOWN}: ask again in a moment")
        raise typer.Exit(ExitCode.UNKNOWN)


def ask_first(client: "Client", text: str, file: str, output: Form, *, yes: bool) -> None:
    """Print what apply will change, and ask if rows are written again or tokens end lost.

    A new pipeline, and one that already has this manifest, needs no question. Raises Exit or Abort
    if the manifest must not be applied.
    """
    if yes and output is Form.JSON:
        return  # nothing to print, nothing to ask
    _refuse_without_name(client, text, file, output)
    try:
        now = _pipeline(client, text)
        if now is None or now == text:
            return
        with render.busy(f"comparing {file}"):
            found = client.check(text, allow_shared=True, timeout_s=CHECK_WAIT_S)
    except (Unreachable, Renamed):
        raise
    except WaybillError as error:
        _go_on_unknown(f"{NOT_KNOWN}: {error}", yes=yes)
        return
    if not found.good:
        _refuse(found, manifest_name(text), file, output)
    if found.changes is None:
        _go_on_unknown(NOT_KNOWN, yes=yes)
        return
    grave = [change for change in found.changes if change.effect]
    if grave and not yes:
        render.complain(*map(str, found.changes))
        _confirm(grave)
    elif output is Form.TABLE:
        render.talk(*map(str, found.changes))


def _refuse_without_name(client: "Client", text: str, file: str, output: Form) -> None:
    """End with the places of what is wrong in a text without a name: it may be no YAML at all."""
    try:
        manifest_name(text)
    except WaybillError:
        found = client.check(text, timeout_s=CHECK_WAIT_S)
        if not found.good:
            _refuse(found, file, file, output)
        raise


def _known(client: "Client", text: str) -> bool:
    return _pipeline(client, text) is not None


def _pipeline(client: "Client", text: str) -> str | None:
    """Return the manifest of the pipeline as it is; None if there is no such pipeline. One that is
    to be called otherwise still has its earlier name.
    """
    for name in filter(None, (manifest_name(text), earlier_name(text))):
        with suppress(NotFound):
            return client.pipeline(name).manifest or ""
    return None


def _lines(found: Findings, text: str, *, exists: bool) -> list[str]:
    if found.changes is not None:
        return [str(change) for change in found.changes] or [NOTHING]
    if exists or not found.good:
        return []
    return [
        f"+ pipeline {manifest_name(text)}: new",
        *(
            f"+ stage {stage.name}: reads {', '.join(stage.inputs)};"
            f" writes {', '.join(stage.sinks)}"
            for stage in found.stages
        ),
    ]


def _refuse(found: Findings, what: str, file: str, output: Form) -> None:
    """Print what is refused, as apply does, and end with an error."""
    if output is Form.JSON:
        render.as_json(found.raw)
    render.complain(
        *(f"warning: {warning}" for warning in found.warnings),
        *(render.fault_text(fault, file) for fault in found.errors),
        render.words("error:", f"apply {what}", "failed"),
    )
    raise typer.Exit(ExitCode.ERROR)


def _go_on_unknown(reason: str, *, yes: bool) -> None:
    if yes:
        render.complain(f"warning: {reason}")
        return
    render.complain(
        render.words("error:", reason), render.words("hint:", "--yes applies it all the same")
    )
    raise typer.Exit(ExitCode.ERROR)


def _confirm(grave: Sequence[Change]) -> None:
    again = any(change.effect == "writes_again" for change in grave)
    loses = any(change.effect == "loses" for change in grave)
    what = " and ".join(
        part
        for part, said in (("writes rows again", again), ("lets tokens end lost", loses))
        if said
    )
    what = what or "changes more than this client knows"
    hint = "--yes applies it; `waybill diff` shows all that would change"
    require_yes(f"this {what}", "Apply it?", hint)
