"""The outcome as a value: every field, the final kinds, and what an older client does not know."""

from datetime import timedelta

import pytest

from waybill import Outcome, OutcomeKind, UnexpectedAnswer
from waybill.fields import Fields

SNAPSHOT = 6150272777574668285
COMPLETE = {
    "outcome": "complete",
    "pipeline": "orders",
    "accepted": 3,
    "issued_at": "2026-11-21T09:00:00.120Z",
    "completed_at": "2026-11-21T09:00:00.634Z",
    "stages": [
        {
            "stage": "enrich",
            "state": "done",
            "batch": 41,
            "committed_at": "2026-11-21T09:00:00.400Z",
            "sinks": [{"name": "enriched_topic", "state": "committed", "batch_rows": 3}],
        },
        {
            "stage": "load",
            "state": "done",
            "batch": 12,
            "committed_at": None,
            "sinks": [
                {
                    "name": "lake",
                    "state": "committed",
                    "batch_rows": 3,
                    "behind": 0,
                    "version": {"iceberg_snapshot_id": SNAPSHOT},
                }
            ],
        },
    ],
    "dead": [],
    "dropped": [],
    "lost": [],
    "eta_s": None,
}
SPAN = {"reason": "before_start", "topic": "orders.in", "partition": 0, "start": 0, "end": 5}


def read(value: object) -> Outcome:
    return Outcome.read(Fields(value, "the outcome"))


def test_a_complete_outcome_has_every_field() -> None:
    outcome = read(COMPLETE)
    assert outcome.complete
    assert outcome.accepted == 3
    assert outcome.issued_at is not None
    assert outcome.completed_at is not None
    assert outcome.completed_at - outcome.issued_at == timedelta(milliseconds=514)
    assert [stage.batch for stage in outcome.stages] == [41, 12]
    assert outcome.stages[1].sinks[0].behind == 0
    assert outcome.raw == COMPLETE


def test_the_snapshots_are_named_by_sink() -> None:
    assert read(COMPLETE).iceberg_snapshots == {"lake": SNAPSHOT}


def test_a_snapshot_id_told_as_text_reads_the_same() -> None:
    sink = {"name": "lake", "state": "committed", "version": {"iceberg_snapshot_id": str(SNAPSHOT)}}
    stage = {"stage": "load", "state": "done", "sinks": [sink]}
    outcome = read({"outcome": "complete", "stages": [stage]})
    assert outcome.iceberg_snapshots == {"lake": SNAPSHOT}


def test_a_postgres_sink_says_how_far_a_standby_must_be() -> None:
    sink = {"name": "people", "state": "committed", "version": {"postgres_lsn": "0/16B3748"}}
    stage = {"stage": "load", "state": "done", "sinks": [sink, {**sink, "version": {}}]}
    (told,) = read({"outcome": "complete", "stages": [stage]}).stages
    assert [each.postgres_lsn for each in told.sinks] == ["0/16B3748", None]


@pytest.mark.parametrize("kind", OutcomeKind)
def test_only_what_cannot_change_is_final_and_only_complete_is_complete(kind: OutcomeKind) -> None:
    outcome = read({"outcome": kind.value})
    assert outcome.final == (kind.value in {"complete", "dead_lettered", "lost"})
    assert outcome.complete == (kind.value == "complete")


def test_what_was_lost_names_reason_and_place() -> None:
    (lost,) = read({"outcome": "lost", "lost": [SPAN]}).lost
    assert (lost.reason, lost.topic, lost.start, lost.end) == ("before_start", "orders.in", 0, 5)


@pytest.mark.parametrize("behind", [7, 0])
def test_a_loss_is_settled_when_no_sink_waits_for_more(behind: int) -> None:
    sink = {"name": "lake", "state": "lost", "behind": behind}
    stage = {"stage": "load", "state": "lost", "sinks": [sink]}
    found = read({"outcome": "lost", "lost": [SPAN], "stages": [stage]})
    assert (found.final, found.settled) == (True, behind == 0)
    assert ("7 to come in lake" in str(found)) is (behind > 0)
    assert read(
        {"outcome": "lost", "parts": [{"pipeline": "p", "outcome": "lost", "stages": [stage]}]}
    ).settled is (behind == 0)


def test_fields_of_a_newer_server_are_left_alone() -> None:
    assert read({"outcome": "complete", "mood": "good"}).raw["mood"] == "good"


def test_an_outcome_of_a_newer_server_is_refused_not_guessed() -> None:
    with pytest.raises(UnexpectedAnswer, match=r"'nearly'.*update waybill-client"):
        read({"outcome": "nearly"})


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "should be a JSON object"),
        ({}, r"outcome should be a text, but is missing"),
        ({"outcome": 3}, "outcome should be a text, but is 3"),
        ({"outcome": "complete", "accepted": "3"}, "accepted should be a whole number"),
        ({"outcome": "complete", "accepted": True}, "accepted should be a whole number"),
        ({"outcome": "complete", "issued_at": "today"}, "issued_at should be a moment"),
        ({"outcome": "complete", "stages": {}}, "stages should be a list"),
        ({"outcome": "complete", "stages": [3]}, r"stages\[0\] should be a JSON object"),
        ({"outcome": "complete", "eta_s": "soon"}, "eta_s should be a number"),
    ],
)
def test_a_field_of_another_type_is_named(value: object, complaint: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=complaint):
        read(value)


def span(reason: str, end: int, partition: int = 0) -> dict[str, object]:
    return {"reason": reason, "topic": "a.in", "partition": partition, "start": 2, "end": end}


def stage(name: str, behind: int | None, blocked_by: str | None = None) -> dict[str, object]:
    sinks = [{"name": f"{name}_out", "state": "waiting", "behind": behind}]
    return {"stage": name, "state": "waiting", "blocked_by": blocked_by, "sinks": sinks}


LOST_PLACES = [
    span("retention_passed", 4),
    span("retention_passed", 3, partition=1),
    span("before_start", 3),
]
STAGES = [stage("enrich", 0), stage("load", 3, "stage_stopped")]
MISSING = "3 to come in {0}load_out, {0}load blocked by stage_stopped"
PART = {"pipeline": "clicks", "outcome": "in_progress", "stages": STAGES}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (COMPLETE, "complete"),
        ({"outcome": "dead_lettered"}, "dead_lettered"),
        ({"outcome": "unknown", "reason": "tracker_silent"}, "unknown: tracker_silent"),
        ({"outcome": "lost", "lost": []}, "lost"),
        (
            {"outcome": "lost", "accepted": 9, "lost": LOST_PLACES},
            "lost: 3 records of a.in (retention_passed), 1 record of a.in (before_start)",
        ),
        (
            {"outcome": "lost", "lost": LOST_PLACES[:1]},
            "lost: 2 offsets of a.in (retention_passed)",
        ),
        ({"outcome": "lost", "lost": [{"reason": "pipeline_deleted"}]}, "lost: pipeline_deleted"),
        ({"outcome": "in_progress"}, "in_progress"),
        ({"outcome": "in_progress", "stages": STAGES}, f"in_progress: {MISSING.format('')}"),
        (
            {"outcome": "in_progress", "stages": STAGES, "parts": [PART]},
            f"in_progress: {MISSING.format('clicks.')}",
        ),
        (
            {"outcome": "in_progress", "stages": [stage(f"{n}", 1) for n in range(9)]},
            "in_progress: 1 to come in 0_out, 1 to come in 1_out, 1 to come in 2_out, and 6 more",
        ),
    ],
)  # fmt: skip
def test_as_text_an_outcome_is_one_line(answer: dict[str, object], line: str) -> None:
    assert f"{read(answer)}" == line


def test_the_details_stay_in_the_repr() -> None:
    assert "iceberg_snapshot_id" in repr(read(COMPLETE))
