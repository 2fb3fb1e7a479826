"""Makes the answer to a validation from what its check found. Never does I/O."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from waybill_shared.contract.commands import Validate
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.graph import PipelineGraph, graph_of
from waybill_shared.contract.manifest.model import Manifest
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.manifest_changes import Columns
from waybill_stage_runner.core.pipelines.planning import TopicState, define_as_new, topics_of

RESULT_BYTES_MAX: Final = 256_000  # of one answer; Kafka accepts four times as much


def validation_result(
    body: Validate,
    problems: Sequence[Problem],
    columns: Columns,
    changes: Sequence[Change] | None = None,
    *,
    notes: Sequence[str] = (),
) -> str:
    """Return the answer as JSON, shortened if it is too long.

    First its columns are left out, then half of the errors again and again, and at last `changes`.
    A part of the changes is never reported as all of them.

    `changes` is None if there is nothing to compare with. `notes` are reported as warnings.
    """
    manifest = body.manifest.model
    warnings = [*body.manifest.warnings, *notes]
    encoded = _encode(manifest, problems, columns, changes, warnings)
    if len(encoded) > RESULT_BYTES_MAX:
        encoded = _encode(manifest, problems, {}, changes, warnings)
    while len(encoded) > RESULT_BYTES_MAX and len(problems) > 1:
        problems = problems[: len(problems) // 2]
        encoded = _encode(manifest, problems, {}, changes, warnings)
    return (
        encoded
        if len(encoded) <= RESULT_BYTES_MAX
        else _encode(manifest, problems, {}, None, warnings)
    )


def _encode(
    manifest: Manifest,
    problems: Sequence[Problem],
    columns: Columns,
    changes: Sequence[Change] | None,
    warnings: Sequence[str],
) -> str:
    """Encode the answer in ASCII, so that its length in characters is its length in bytes."""
    return json.dumps(
        {
            "errors": [asdict(problem) for problem in problems],
            "warnings": list(warnings),
            "graph": _graph(_plan_graph(manifest), columns),
            "changes": None if changes is None else [asdict(each) for each in changes],
        },
        separators=(",", ":"),
    )


def _plan_graph(manifest: Manifest) -> PipelineGraph:
    """Plan the graph with the names of topics as their ids: this check does not ask Kafka
    for ids.
    """
    topics = {
        plan.topic: TopicState(topic_id=plan.topic, starts={}, ends={})
        for plan in topics_of(manifest)
    }
    return graph_of(define_as_new(manifest, topics))


def _graph(graph: PipelineGraph, columns: Columns) -> dict[str, object]:
    of_stage = {f"stage/{name}": {"columns": by_sink} for name, by_sink in columns.items()}
    return {
        "nodes": [
            {"id": node.id, "kind": node.kind, **of_stage.get(node.id, {})} for node in graph.nodes
        ],
        "edges": [{"from": edge.source, "to": edge.target} for edge in graph.edges],
    }
