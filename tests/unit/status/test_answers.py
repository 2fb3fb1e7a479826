"""What is told of an outcome and of a pipeline, and in which words over HTTP."""

import json
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from builders import MANIFEST, applied, make_batch
from clocks import NOW
from unit.status.slots import (
    COPY,
    ENRICH,
    KEY,
    LOAD,
    claim,
    life,
    progress,
    reading,
    record,
    slot,
    span,
    stages,
    token,
    view,
)
from waybill_shared.contract.events import Desired
from waybill_shared.contract.graph import graph_of
from waybill_shared.contract.rescales import Rescaled
from waybill_shared.contract.slots import SinkState, sink_key
from waybill_shared.contract.tokens import Part, Token
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_shared.http.examples import example
from waybill_shared.http.operations import OperationAnswer
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.adapters.http.models import BatchesAnswer, PipelinesAnswer, RunsAnswer
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement, kind_of
from waybill_status.core.outcomes.outcome import Outcome, count_accepted, describe
from waybill_status.core.outcomes.views import SlotReading
from waybill_status.core.pipelines.answers import PipelineDetail
from waybill_status.core.pipelines.details import detail_of, summary_of
from waybill_status.core.pipelines.offsets import PipelineOffsets

BATCHES = {
    (KEY, ENRICH): progress(4, 5, at=40, sink=ENRICH).batch,
    (KEY, COPY): progress(4, 5, at=50, sink=COPY).batch,
    (KEY, LOAD): progress(7, 9, at=70).batch,
}


def complete() -> Outcome:
    judgement = judge(claim(span(3, 5)), view(slot(enriched=(9,), copy=(9,), lake=(9,))))
    return describe(token(span(3, 5)), [judgement], BATCHES)


def other(kind: OutcomeKind, reason: UnknownReason | None = None) -> Judgement:
    return Judgement(pipeline=("default", "uid-2"), name="other", kind=kind, reason=reason)


def test_a_complete_outcome_names_batches_versions_and_moment() -> None:
    outcome = complete()
    assert (outcome.outcome, outcome.accepted, outcome.completed_at) == (
        OutcomeKind.COMPLETE,
        2,
        70,
    )
    enrich, load = outcome.stages
    assert (enrich.state, enrich.batch, enrich.committed_at) == ("done", 4, 50)
    assert (load.batch, load.sinks[0].version) == (7, {"iceberg_snapshot_id": "107"})
    assert outcome.parts is None


def test_a_forgotten_batch_is_expired_but_complete() -> None:
    judgement = judge(claim(span(3, 5)), view(slot(enriched=(9,), copy=(9,), lake=(9,))))
    outcome = describe(token(span(3, 5)), [judgement], {**BATCHES, (KEY, LOAD): None})
    assert (outcome.outcome, outcome.completed_at) == (OutcomeKind.COMPLETE, None)
    assert outcome.stages[1].batch is None
    assert outcome.stages[1].sinks[0].state == "committed"
    assert outcome.stages[1].sinks[0].detail == "expired"


@pytest.mark.parametrize(("versions_from", "detail"), [(7, None), (8, "version_expired")])
def test_a_version_that_was_expired_is_told_beside_it(
    versions_from: int, detail: str | None
) -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    gone = replace(content.sinks[LOAD], versions_from=versions_from)
    content = replace(content, sinks={**content.sinks, LOAD: gone})
    outcome = describe(token(span(3, 5)), [judge(claim(span(3, 5)), view(content))], BATCHES)
    (sink,) = outcome.stages[1].sinks
    assert (sink.version, sink.detail) == ({"iceberg_snapshot_id": "107"}, detail)


def test_a_blocked_stage_says_so_only_while_it_is_not_done() -> None:
    content = slot(enriched=(9,), copy=(9,), lifecycle=life("Stopped"))
    outcome = describe(token(span(3, 5)), [judge(claim(span(3, 5)), view(content))], BATCHES)
    assert [(stage.state, stage.blocked_by) for stage in outcome.stages] == [
        ("done", None),
        ("blocked", "stage_stopped"),
    ]
    assert outcome.completed_at is None


@pytest.mark.parametrize(
    ("kinds", "together"),
    [
        ([OutcomeKind.COMPLETE, OutcomeKind.COMPLETE], OutcomeKind.COMPLETE),
        ([OutcomeKind.COMPLETE, OutcomeKind.IN_PROGRESS], OutcomeKind.IN_PROGRESS),
        ([OutcomeKind.COMPLETE, OutcomeKind.UNKNOWN], OutcomeKind.UNKNOWN),
        ([OutcomeKind.IN_PROGRESS, OutcomeKind.UNKNOWN], OutcomeKind.UNKNOWN),
        ([OutcomeKind.UNKNOWN, OutcomeKind.LOST], OutcomeKind.LOST),
        ([OutcomeKind.DEAD_LETTERED, OutcomeKind.COMPLETE], OutcomeKind.DEAD_LETTERED),
        ([OutcomeKind.DEAD_LETTERED, OutcomeKind.IN_PROGRESS], OutcomeKind.IN_PROGRESS),
    ],
)
def test_pipelines_of_one_token_have_one_outcome(
    kinds: list[OutcomeKind], together: OutcomeKind
) -> None:
    assert kind_of([other(kind) for kind in kinds]) == together


def test_a_token_of_two_pipelines_tells_each() -> None:
    judgement = judge(claim(span(3, 5)), view(slot(enriched=(9,), copy=(9,), lake=(9,))))
    both = [judgement, other(OutcomeKind.UNKNOWN, UnknownReason.SLOT_MISSING)]
    outcome = describe(token(span(3, 5)), both, BATCHES)
    assert (outcome.outcome, outcome.reason, outcome.pipeline) == (
        OutcomeKind.UNKNOWN,
        "slot_missing",
        None,
    )
    assert outcome.completed_at is None
    assert [part.pipeline for part in outcome.parts or ()] == ["orders", "other"]


def test_accepted_counts_each_record_once() -> None:
    assert count_accepted(token(span(3, 5), span(0, 1, 1))) == 3
    (part,) = token(span(3, 5)).parts
    uncounted = replace(part, counted=False)
    assert count_accepted(replace(token(span(3, 5)), parts=(part, uncounted))) is None
    shared_topic = Part(pipeline_id="ff" * 8, generation=1, spans=part.spans)
    twice = Token(issued_at=NOW, request_id="00" * 8, parts=(part, shared_topic))
    assert count_accepted(twice) == 2


def test_an_outcome_reads_as_the_contract_has_it() -> None:
    told = json.loads(TypeAdapter(Outcome).dump_json(complete()))
    shown = example("status/complete")
    assert list(told) == list(shown)
    assert told["issued_at"] == "2026-11-18T11:06:40.000Z"
    assert list(told["stages"][0]) == list(shown["stages"][0])
    assert list(told["stages"][1]["sinks"][0]) == list(shown["stages"][1]["sinks"][0])


@pytest.mark.parametrize(
    ("phase", "at"), [("Finished", 99), ("Finishing", 99), ("Running", None), ("Stopped", None)]
)
def test_a_stage_says_when_a_pipeline_that_has_finished_runs_again(
    phase: str, at: int | None
) -> None:
    """Unless the stage has all of the token."""
    finished = replace(life(phase), next_run_at=99)
    content = slot(enriched=(9,), copy=(9,), lifecycle=finished)
    outcome = describe(token(span(3, 5)), [judge(claim(span(3, 5)), view(content))], BATCHES)
    assert [stage.next_run_at for stage in outcome.stages] == [None, at]
    told = json.loads(TypeAdapter(Outcome).dump_json(outcome))
    assert "next_run_at" not in told["stages"][0]
    assert ("next_run_at" in told["stages"][1]) is (at is not None)


@pytest.mark.parametrize(
    ("phase", "desired", "at"),
    [
        ("Finished", "running", 99),
        ("Running", "running", 99),
        ("Paused", "paused", None),
        ("Failed", "running", None),
    ],
)
def test_a_pipeline_says_when_its_schedule_begins_the_next_run(
    phase: str, desired: Desired, at: int | None
) -> None:
    finished = phase == "Finished"
    known = replace(record(), desired=desired, next_run_at=99, finished=finished)
    content = slot(lifecycle=replace(life(phase), run=known.run))
    assert detail_of(known, reading(content), KnownConnectors()).next_run_at == at


@pytest.mark.parametrize(
    ("written", "rescaled", "of_run", "shown"),
    [
        ("", None, None, None),
        ("", None, 2, 2),
        ("parallelism: 4", None, 2, 4),
        ("parallelism: 4", Rescaled(parallelism=3, actor="ada"), 2, 3),
    ],
)
def test_a_pipeline_says_how_many_of_its_tasks_run_at_once(
    written: str, rescaled: Rescaled | None, of_run: int | None, shown: int | None
) -> None:
    """What a rescale has set, else what its manifest says, else what its run has."""
    manifest = applied(f"{MANIFEST}{written}\n")
    content = slot(lifecycle=replace(life(), parallelism=of_run))
    known = replace(record(), manifest=manifest, rescaled=rescaled)
    assert detail_of(known, reading(content), KnownConnectors()).parallelism == shown


def test_a_pipeline_reads_as_the_contract_has_it() -> None:
    state = SinkState(batch=make_batch(3, version={"iceberg_snapshot_id": "1"}))
    content = slot(lifecycle=life())
    content.sinks[sink_key("load", "lake", 1)] = state
    detail = detail_of(record(), reading(content), KnownConnectors())
    told = json.loads(TypeAdapter(PipelineDetail).dump_json(detail))
    assert list(told) == list(example("status/pipeline"))
    assert list(told["stages"][1]["last_batch"]) == list(
        example("status/pipeline")["stages"][0]["last_batch"]
    )
    assert told["stages"][0]["last_batch"] is None
    assert told["phase"] == "Running"


@pytest.mark.parametrize(
    ("held", "phase"),
    [
        (None, "Unknown"),
        (reading(None, run_id=None), "Unknown"),
        (reading(slot(), run_id="other"), "Unknown"),
        (reading(slot()), "Created"),
        (reading(slot(lifecycle=life("Starting", at=5))), "Starting"),
        (reading(slot(lifecycle=life("Running"), heard_at=NOW - 10_001)), "Unknown"),
    ],
)
def test_a_phase_is_told_only_while_its_runner_is_heard(
    held: SlotReading | None, phase: str
) -> None:
    assert summary_of(record(), held).phase == phase


def test_the_graph_joins_stages_by_the_topics_between_them() -> None:
    graph = graph_of(stages(0, 0))
    assert [(edge.source, edge.target) for edge in graph.edges] == [
        ("input/orders", "stage/enrich"),
        ("stage/enrich", "sink/enriched"),
        ("stage/enrich", "sink/copy"),
        ("sink/enriched", "stage/load"),
        ("stage/load", "sink/lake"),
    ]
    assert {node.id for node in graph.nodes} == {
        n for e in graph.edges for n in (e.source, e.target)
    }


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (Outcome, example("status/complete")),
        (Outcome, example("status/with_dead_letters")),
        (PipelinesAnswer, example("status/pipelines")),
        (PipelineDetail, example("status/pipeline")),
        (PipelineOffsets, example("status/offsets")),
        (RunsAnswer, example("status/runs")),
        (BatchesAnswer, example("status/batches")),
        (OperationAnswer, example("operation")),
    ],
)
def test_examples_have_the_members_of_their_models(
    model: type[object], example: dict[str, object]
) -> None:
    described = TypeAdapter(model).json_schema(mode="serialization")["properties"]
    silent = {"reason", "parts", "dead_truncated"} if model is Outcome else set()
    assert set(example) == set(described) - silent
