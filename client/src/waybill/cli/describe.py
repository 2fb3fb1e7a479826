"""Describes one pipeline for people, line by line. Never asks Waybill anything."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.conditions import PipelineCondition
from waybill.flows import PipelineFlow
from waybill.pipelines import (
    Pipeline,
    PipelineConnector,
    PipelineInput,
    PipelineStage,
)

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text


TRUSTED = "trusted: any query is accepted here, also one that runs Java or reads files"


def describe_lines(pipeline: Pipeline, flow: PipelineFlow | None) -> "list[Text]":
    """Describe what it is and what is wrong, then its inputs, stages, sinks and its manifest.

    `flow`: how far it is and how many dead letters it has, as the console shows it; None: that is
    not known now.
    """
    facts = [*_facts(pipeline), ("Dead letters", _dead(flow))]
    lines = render.table([(f"{name}:", value) for name, value in facts if value])
    if pipeline.stuck is not None:
        lines += [render.words(""), render.words("stuck:", pipeline.stuck.cause)]
        lines += [render.words("hint:", pipeline.stuck.hint)] if pipeline.stuck.hint else []
    lines += _section("Inputs", [_input(item) for item in pipeline.inputs])
    files = [_file(item, each) for item in pipeline.inputs for each in item.connectors]
    lines += _section("Files", files)
    lines += [line for item in pipeline.inputs for line in _faults(item)]
    lines += [line for item in pipeline.inputs for line in _warnings(item)]
    lags = {} if flow is None else {(s.stage, s.name): s.behind for s in flow.sinks}
    stopped = {each.stage for each in pipeline.conditions if each.cause == "stage_failed"}
    stages = [
        row for each in pipeline.stages for row in _stage(each, lags, stopped=each.name in stopped)
    ]
    lines += _section("Stages", stages)
    if pipeline.manifest:
        lines += _section("Manifest", [(line,) for line in pipeline.manifest.splitlines()])
    return lines


def _facts(pipeline: Pipeline) -> list[tuple[str, str]]:
    return [
        ("Name", pipeline.name),
        ("Phase", pipeline.phase),
        ("Desired", _desired(pipeline)),
        ("Allowed now", ", ".join(pipeline.allowed_actions)),
        ("Reason", pipeline.reason or ""),
        ("Run", str(pipeline.run) if pipeline.run else ""),
        ("Parallelism", str(pipeline.parallelism) if pipeline.parallelism else ""),
        ("Attempt", str(pipeline.attempt) if pipeline.attempt else ""),
        ("Since", _moment(pipeline.since)),
        *(("Degraded", _condition(each)) for each in pipeline.conditions),
        ("Escalates", _moment(pipeline.escalates_at)),
        ("Next run", _moment(pipeline.next_run_at)),
        ("SQL guard", TRUSTED if pipeline.sql_guard == "trusted" else ""),
        ("Generation", "" if pipeline.generation is None else str(pipeline.generation)),
        ("Uid", pipeline.uid or ""),
    ]


def _condition(condition: PipelineCondition) -> str:
    """Return `no_progress in stage load since 2026-11-21T09:00:00+00:00`, for example."""
    stage = f" in stage {condition.stage}" if condition.stage else ""
    said = f": {condition.message}" if condition.message else ""
    return f"{condition.cause}{stage} since {_moment(condition.since)}{said}"


def _desired(pipeline: Pipeline) -> str:
    by = f", asked for by {pipeline.desired_by}" if pipeline.desired_by else ""
    return f"{pipeline.desired or ''}{by}"


def _moment(at: "datetime | None") -> str:
    return "" if at is None else at.isoformat(timespec="seconds")


def _dead(flow: PipelineFlow | None) -> str:
    """Return the number of dead letters, as in `about 4: waybill dlq list orders`."""
    return f"about {flow.dead}: waybill dlq list {flow.name}" if flow and flow.dead else ""


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> "list[Text]":
    if not rows:
        return []
    return [
        render.words(""),
        render.words(f"{title}:"),
        *render.table([("", *row) for row in rows]),
    ]


def _input(item: PipelineInput) -> tuple[str, ...]:
    partitions = "" if item.partitions is None else render.count(item.partitions, "partition")
    bases = ", ".join(f"{partition}: {base}" for partition, base in sorted(item.bases.items()))
    return (item.name, f"topic {item.topic}", partitions, f"from {bases}" if bases else "")


def _file(item: PipelineInput, file: PipelineConnector) -> tuple[str, ...]:
    """Return the row of a file.

    As in `price  tutorial-price-s3  done  3 rows, 1 dead  https://files.example/price.json`.
    """
    text = render.count(file.rows, "row") + (f", {file.dead} dead" if file.dead else "")
    if file.state == "fetching" and file.size:
        text += f", {100 * file.bytes // file.size} %"
    return (item.name, file.name, file.state, text, file.url)


def _faults(item: PipelineInput) -> "list[Text]":
    """Return the errors and notes of the files of an input."""
    return [
        line
        for file in item.connectors
        for kind, said in (("error:", file.error), ("note:", file.note))
        if said is not None
        for line in (render.words(""), render.words(kind, f"{file.name}: {said}"))
    ]


def _warnings(item: PipelineInput) -> "list[Text]":
    lines: list[Text] = []
    if item.warnings:
        had = f"{_records(item.ignored_records, item)} had"
        lines += [
            render.words(""),
            render.words("warning:", f"{had} fields that are no columns; these were left out:"),
            *(render.words(" ", warning) for warning in item.warnings),
        ]
    for counts, what in ((item.dropped, "dropped"), (item.warned, "only warned of")):
        if counts:
            rules = ", ".join(f"{rule} {number}" for rule, number in sorted(counts.items()))
            number = sum(counts.values())
            was = "was" if number == 1 else "were"
            text = f"{_records(number, item)} {was} {what}, by rule: {rules}"
            lines += [render.words(""), render.words("warning:", text)]
    return lines


def _records(number: int, item: PipelineInput) -> str:
    return f"{render.count(number, 'record')} of input {item.name}"


def _stage(
    stage: PipelineStage, lag: Mapping[tuple[str, str], int], *, stopped: bool
) -> list[tuple[str, str, str]]:
    batch = "no batch yet" if stage.last_batch is None else _batch(stage.last_batch)
    batch = f"stopped, {batch}" if stopped else batch
    rows = [(stage.name, f"reads {', '.join(stage.inputs)}", batch)]
    for sink in stage.sinks:
        offsets = lag.get((stage.name, sink.name))
        more = [f"{render.count(offsets, 'offset')} behind"] if offsets is not None else []
        more += ["tokens wait for it"] if sink.terminal else []
        more += [f"blocked by {sink.blocked_by}"] if sink.blocked_by else []
        text = f"{sink.name}: {sink.kind} {sink.target or ''}".rstrip()
        rows.append(("", text, ", ".join(more)))
    return rows


def _batch(batch: Mapping[str, object]) -> str:
    """Return `last batch 12 at 2026-11-21T09:00:00Z, 3 rows, iceberg snapshot 61502`, for
    example."""
    version = batch.get("version")
    facts = [f"last batch {batch.get('batch')} at {batch.get('committed_at')}"]
    facts.append(render.count(int(str(batch.get("rows") or 0)), "row"))
    if isinstance(version, dict):
        facts += [f"{render.spell(name)} {value}" for name, value in version.items()]
    return ", ".join(facts)
