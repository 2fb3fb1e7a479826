"""Lays out one pipeline for people. Never asks Waybill anything."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.pipelines import Pipeline, PipelineInput, PipelineStage

if TYPE_CHECKING:
    from rich.text import Text


def describe_lines(pipeline: Pipeline) -> "list[Text]":
    """What it is, what is wrong, then inputs, stages, sinks and the manifest."""
    lines = render.table([(f"{name}:", value) for name, value in _facts(pipeline) if value])
    if pipeline.error is not None:
        lines += [render.words(""), render.words("error:", pipeline.error.message)]
        lines += [render.words("hint:", pipeline.error.hint)] if pipeline.error.hint else []
    lines += _section("Inputs", [_input(item) for item in pipeline.inputs])
    lines += _section("Stages", [row for stage in pipeline.stages for row in _stage(stage)])
    if pipeline.manifest:
        lines += _section("Manifest", [(line,) for line in pipeline.manifest.splitlines()])
    return lines


def _facts(pipeline: Pipeline) -> list[tuple[str, str]]:
    return [
        ("Name", pipeline.name),
        ("Phase", pipeline.phase),
        ("Desired", pipeline.desired or ""),
        ("Reason", pipeline.reason or ""),
        ("Since", "" if pipeline.since is None else pipeline.since.isoformat(timespec="seconds")),
        ("Generation", "" if pipeline.generation is None else str(pipeline.generation)),
        ("Uid", pipeline.uid or ""),
    ]


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> "list[Text]":
    if not rows:
        return []
    return [
        render.words(""),
        render.words(f"{title}:"),
        *render.table([("", *row) for row in rows]),
    ]


def _input(item: PipelineInput) -> tuple[str, ...]:
    partitions = "" if item.partitions is None else render.counted(item.partitions, "partition")
    bases = ", ".join(f"{partition}: {base}" for partition, base in sorted(item.bases.items()))
    return (item.name, f"topic {item.topic}", partitions, f"from {bases}" if bases else "")


def _stage(stage: PipelineStage) -> list[tuple[str, str, str]]:
    batch = "" if stage.last_batch is None else f"last batch {json.dumps(stage.last_batch)}"
    rows = [(stage.name, f"reads {', '.join(stage.inputs)}", batch)]
    for sink in stage.sinks:
        awaited = "tokens wait for it" if sink.terminal else ""
        rows.append(("", f"{sink.name}: {sink.kind} {sink.target or ''}".rstrip(), awaited))
    return rows
