"""The command init: writes a first manifest, which runs as it is."""

from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.manifest_files import STDIN
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import connect
from waybill.first_manifest import NAME, NAME_IN_WORDS, FirstManifest, name_for
from waybill.proposals import Proposal

STDOUT = STDIN  # one sign for both, as elsewhere
NAMED_WHERE_PRINTED = "FILE"


def valid_name(name: str | None) -> str | None:
    if name is not None and not NAME.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is no name of a pipeline: {NAME_IN_WORDS}")
    return name


def init(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="of the pipeline; else made of this folder's", callback=valid_name
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", metavar="FILE", help="else NAME.yaml; - for stdout"),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--from", metavar="TOPIC", help="propose columns from its newest records"),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Write a first manifest, with comments, that runs as it is.

    It needs no server, except with --from: then Waybill reads the newest records of the topic, 100
    at most, and proposes columns that accept each of them. A file that exists is never overwritten.

    \b
    Example:
      waybill init orders && waybill apply -f orders.yaml
      waybill init clicks --from shop.clicks

    Exit codes: 0 written · 1 error · 2 usage, also when the file exists
    """
    name = name or name_for(Path.cwd().name)
    target = file or Path(f"{name}.yaml")
    printed = str(target) == STDOUT
    if not printed and target.exists():
        raise _exists(target)
    proposal = None if topic is None else _propose(topic)
    shown = NAMED_WHERE_PRINTED if printed else str(target)
    manifest = FirstManifest(name=name, file=shown, proposal=proposal)
    if not printed:
        _write(target, manifest.text)
    _print(manifest, None if printed else shown, output)


def _propose(topic: str) -> Proposal:
    with connect() as client, render.busy(f"reading {topic}"):
        return client.propose(topic)


def _write(target: Path, text: str) -> None:
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write {target}: {error.strerror}", param_hint="--file"
        ) from error


def _exists(target: Path) -> typer.BadParameter:
    said = f"{target} exists and was left as it is: give another NAME, or another file with -f"
    return typer.BadParameter(said, param_hint="--file")


def _print(manifest: FirstManifest, file: str | None, output: Form) -> None:
    notes = () if manifest.proposal is None else manifest.proposal.notes
    if output is Form.JSON:
        answer = {"name": manifest.name, "file": file, "manifest": manifest.text}
        render.as_json({**answer, "notes": list(notes)})
        return
    if file is None:
        render.exactly(manifest.text)
    else:
        render.data([f"{file} is written"])
    render.complain(*(f"note: {note}" for note in notes))
    if file is not None:
        render.talk(manifest.next_steps, *(f"  {command}" for command in manifest.commands))
