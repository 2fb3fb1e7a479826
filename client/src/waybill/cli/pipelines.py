"""The commands that look at pipelines: list, get, describe, wait."""

from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.describe import describe_lines
from waybill.cli.flow import flow_of
from waybill.cli.operations import follow, follow_accepted
from waybill.cli.phase_view import DRIVER_WAIT_S, show_phase
from waybill.cli.phases import PipelinePhase
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import (
    MANIFEST_WORD,
    PipelineArgument,
    TimeoutOption,
    connect,
    list_after_manifest,
    list_pipelines,
    not_empty,
)
from waybill.errors import WaybillError
from waybill.manifest_versions import version_of
from waybill.pipelines import Pipeline
from waybill.tokens import TOKEN

AnybodyOption = Annotated[
    bool, typer.Option("--anybody", help="wait also for what comes only if somebody acts")
]
HEADER = ("NAME", "PHASE", "DESIRED", "GENERATION", "SINCE", "REASON")


def _known_or_manifest() -> list[str]:
    return [*list_pipelines(), MANIFEST_WORD]


def list_all(
    *,
    phase: Annotated[
        list[PipelinePhase] | None,
        typer.Option("--phase", case_sensitive=False, help="only those in it; may be repeated"),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="only those with it; may be repeated"),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """List the pipelines, all or those in a phase or with a tag.

    A pipeline is listed if it is in one of the phases, and has all of the tags. Tags are in the
    manifest.

    \b
    Example:
      waybill list --phase Failed
      waybill list --tag shop --phase Recovering --phase Failed
      waybill list --phase Failed -o json | jq -r '.items[].name'

    Exit codes: 0 ok, also when there is none · 1 error
    """
    _list(phase or [], tag or [], output)


def get(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="PIPELINE|manifest",
            help="only this one; or the word manifest, and a name after it",
            autocompletion=_known_or_manifest,
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Argument(
            metavar="PIPELINE",
            help="the pipeline of the manifest",
            autocompletion=list_after_manifest,
        ),
    ] = None,
    generation: Annotated[
        int | None,
        typer.Option(
            "--generation", min=1, metavar="N", help="the manifest that was applied as this one"
        ),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """List the pipelines, or show one; or print the manifest that is applied.

    `waybill get manifest NAME` prints the text exactly as it was applied, comments too. With -o
    json it is an object with name, generation and manifest. --generation prints an earlier one: the
    last ten are kept. The word manifest alone, without a name after it, is the name of a pipeline.

    \b
    Example:
      waybill get
      waybill get orders -o json | jq .phase
      waybill get manifest orders > orders.yaml && waybill apply -f orders.yaml
      waybill get manifest orders --generation 3 | diff - orders.yaml

    Exit codes: 0 ok · 1 error, also when there is no such pipeline · 2 usage
    """
    if of is not None:
        _get_manifest(name, of, generation, output)
        return
    if generation is not None:
        raise typer.BadParameter("--generation goes with `waybill get manifest NAME`")
    if name is None:
        _list([], [], output)
        return
    with connect() as client:
        found = client.pipeline(name)
    if output is Form.JSON:
        render.as_json(found.raw)
    else:
        render.data(render.table([_row(found)], header=HEADER))


def _list(phases: list[PipelinePhase], tags: list[str], output: Form) -> None:
    with connect() as client:
        found = client.pipelines(phases=[*map(str, phases)], tags=tags)
    if output is Form.JSON:
        render.as_json({"items": [pipeline.raw for pipeline in found]})
    elif found:
        render.data(render.table([_row(pipeline) for pipeline in found], header=HEADER))
    elif phases or tags:
        render.talk("no pipeline is so now: `waybill get` lists all")
    else:
        render.talk("no pipelines yet: create one with `waybill apply -f FILE`")


def _get_manifest(word: str | None, name: str, generation: int | None, output: Form) -> None:
    if word != MANIFEST_WORD:
        raise typer.BadParameter(
            f"one name is the most: `waybill get {name}`, or `waybill get manifest {name}`"
        )
    with connect() as client:
        if generation is None:
            pipeline = client.pipeline(name)
            text, shown = pipeline.manifest, pipeline.generation
        else:
            found = version_of(client.manifests(name), generation)
            text, shown = found.text, found.generation
    if text is None:
        raise WaybillError(f"the manifest of {name} is not known: ask again in a moment")
    if output is Form.JSON:
        render.as_json({"name": name, "generation": shown, "manifest": text})
    else:
        render.exactly(text)


def describe(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Show all there is to know of a pipeline.

    What it waits for or why it fails, its inputs, stages and sinks, the lag of each sink, its last
    batches and its manifest.

    \b
    Example:
      waybill describe orders

    Exit codes: 0 ok · 1 error, also when there is no such pipeline
    """
    with connect() as client:
        pipeline = client.pipeline(name)
    if output is Form.JSON:
        render.as_json(pipeline.raw)
    else:
        render.data(describe_lines(pipeline, flow_of(name)))


def wait(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PIPELINE|OPERATION",
            help="a pipeline's name, or an operation as `waybill apply` prints it",
            callback=not_empty,
            autocompletion=list_pipelines,
        ),
    ],
    phase: Annotated[
        PipelinePhase, typer.Option("--for", case_sensitive=False, help="the phase to wait for")
    ] = PipelinePhase.RUNNING,
    timeout: TimeoutOption = DRIVER_WAIT_S,
    anybody: AnybodyOption = False,  # noqa: FBT002 - a flag of the command line
    output: OutputOption = Form.TABLE,
) -> None:
    """Wait until a pipeline is Running, or in another phase; or until an operation is done.

    A pipeline that ends by itself is Finished when it has read all; this ends the wait for Running,
    too.

    A change that a command of this user only reported as accepted comes first: the phase counts
    once it is done. Changes by another user, or from another machine, are not known here: for those
    use `waybill wait OPERATION`, with the operation that waybill apply prints.

    A pipeline that is stopped, paused or finished gets into another phase only if somebody acts:
    the wait ends at once with 1, and says how it goes on. With --anybody it waits all the same.

    \b
    Example:
      waybill wait orders
      waybill wait orders --for Stopped --timeout 30
      waybill wait orders --anybody --timeout 600
      waybill start orders && waybill wait orders --for Finished
      waybill wait apply.orders.3f9c2d1a

    \b
    Exit codes: 0 it is in the phase, or done · 1 error, also when it is Failed instead, when it
      rests and somebody must act, or when a change was refused · 4 not when the time was over ·
      5 what became of a change is not known any more; this is printed once
    """
    if TOKEN.fullmatch(name):
        raise typer.BadParameter(f"that is a token: `waybill token wait {name}`")
    if "." in name:  # no pipeline is called so
        follow(name, timeout, output)
        return
    with connect() as client:
        left_s = follow_accepted(client, name, timeout, output)
        with show_phase(name, f"waiting for {name} to be {phase}", output):
            pipeline = client.wait_pipeline(name, phase, left_s, somebody_acts=anybody)
    if output is Form.JSON:
        render.as_json(pipeline.raw)
    else:
        render.data([render.words(pipeline.name, pipeline.phase)])


def _row(pipeline: Pipeline) -> tuple[str, ...]:
    return (
        pipeline.name,
        pipeline.phase,
        pipeline.desired or "",
        "" if pipeline.generation is None else str(pipeline.generation),
        "" if pipeline.since is None else pipeline.since.isoformat(timespec="seconds"),
        _reason(pipeline),
    )


def _reason(pipeline: Pipeline) -> str:
    """Return what is wrong with it, else the reason of its phase."""
    named = (
        f"{each.cause} in stage {each.stage}" if each.stage else each.cause
        for each in pipeline.conditions
    )
    wrong = "; ".join(named)
    return f"degraded: {wrong}" if wrong else pipeline.reason or ""
