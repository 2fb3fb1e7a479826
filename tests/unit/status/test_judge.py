"""The rules by which a token's outcome is decided."""

from dataclasses import replace

import pytest

from builders import make_sink, make_stage
from clocks import NOW
from unit.status.slots import (
    COPY,
    ENRICH,
    LOAD,
    claim,
    life,
    offsets,
    reading,
    slot,
    span,
    stages_of,
    view,
    with_stages,
)
from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.lifecycle import HEARTBEAT_AGE_MS_MAX
from waybill_shared.contract.lifecycle_events import Condition
from waybill_shared.contract.slots import NON_FINAL_AGE_MS_MAX, SinkState, Slot
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.views import view_of


def lost(judgement: Judgement) -> list[tuple[str, int, int, int]]:
    return [(each.reason, each.partition, each.start, each.end) for each in judgement.lost]


def test_complete_needs_every_terminal_sink() -> None:
    wanted = claim(span(3, 5))
    for enough in (slot(enriched=(5,), copy=(5,), lake=(5,)), slot(copy=(5,), lake=(9, 9))):
        assert judge(wanted, view(enough)).kind == OutcomeKind.COMPLETE
    for short in (
        slot(enriched=(5,), copy=(5,), lake=(4,)),
        slot(enriched=(5,), copy=(4,), lake=(5,)),
        slot(enriched=(5,), lake=(5,)),
        slot(enriched=(5,), copy=(5,)),
    ):
        assert judge(wanted, view(short)).kind == OutcomeKind.IN_PROGRESS


def test_complete_needs_every_partition() -> None:
    wanted = claim(span(3, 5), span(0, 1, partition=1))
    assert judge(wanted, view(slot(copy=(5, 1), lake=(5, 0)))).kind == OutcomeKind.IN_PROGRESS
    assert judge(wanted, view(slot(copy=(5, 1), lake=(5, 1)))).kind == OutcomeKind.COMPLETE


def test_progress_is_told_per_stage_and_sink() -> None:
    judgement = judge(claim(span(3, 8)), view(slot(enriched=(8,), copy=(5,), lake=(1,))))
    told = {s.key: (s.covered, s.required, s.behind) for g in judgement.stages for s in g.sinks}
    assert told == {ENRICH: (True, False, 0), COPY: (False, True, 3), LOAD: (False, True, 5)}
    assert [stage.name for stage in judgement.stages] == ["enrich", "load"]


def test_what_lies_before_the_base_is_lost() -> None:
    content = slot(copy=(9,), lake=(9,), bases=(4, 0))
    judgement = judge(claim(span(2, 6), span(7, 8)), view(content))
    assert judgement.kind == OutcomeKind.LOST
    assert lost(judgement) == [("before_start", 0, 2, 4)]
    assert judge(claim(span(4, 6)), view(content)).kind == OutcomeKind.COMPLETE


def test_an_empty_span_where_a_stage_begins_is_complete() -> None:
    vacuous = judge(claim(span(4, 4)), view(slot(bases=(4, 0))))
    assert vacuous.kind == OutcomeKind.COMPLETE
    assert vacuous.stages[0].sinks[0].vacuous


def test_a_deleted_pipeline_keeps_what_it_had_done() -> None:
    content = slot(copy=(9,), lake=(6,), deleted=True)
    assert judge(claim(span(3, 6)), view(content)).kind == OutcomeKind.COMPLETE
    judgement = judge(claim(span(3, 8), span(0, 2, partition=1)), view(content))
    assert judgement.kind == OutcomeKind.LOST
    assert lost(judgement) == [("pipeline_deleted", 0, 6, 8), ("pipeline_deleted", 1, 0, 2)]
    short = [sink for stage in judgement.stages for sink in stage.sinks if not sink.covered]
    assert short
    assert all(sink.lost and not sink.coming for sink in short), "nothing comes any more"


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (None, "redis_away"),
        (reading(None, run_id=None), "slot_missing"),
        (reading(slot(copy=(9,), lake=(9,)), run_id="other"), "slot_missing"),
        (reading(slot(copy=(9,), lake=(9,), generation=0)), "generation_behind"),
        (reading(Slot(tenant="default", pipeline_uid="u", generation=1)), "no_definition"),
    ],
)
def test_missing_knowledge_is_unknown(held: object, reason: str) -> None:
    judgement = judge(claim(span(0, 5)), view_of(held))  # type: ignore[arg-type]
    assert (judgement.kind, judgement.reason) == (OutcomeKind.UNKNOWN, reason)


def test_an_input_that_no_stage_reads_any_more_is_unknown() -> None:
    known = claim(span(0, 5))
    elsewhere = replace(span(0, 5), topic_id="elsewhere")
    gone = replace(known.parts[0], spans=(elsewhere,))
    both = replace(known, parts=(*known.parts, gone))
    judgement = judge(both, view(slot(copy=(9,), lake=(9,))))
    assert (judgement.kind, judgement.reason) == (OutcomeKind.UNKNOWN, "nothing_required")


def test_without_anything_to_wait_for_nothing_is_complete() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    (enrich, _) = stages_of(content)
    inner = replace(enrich, sinks=(replace(enrich.sinks[0], since=9),))
    judgement = judge(claim(span(0, 5)), view(with_stages(content, inner)))
    assert (judgement.kind, judgement.reason) == (OutcomeKind.UNKNOWN, "nothing_required")


def test_a_silent_tracker_leaves_only_final_outcomes() -> None:
    late = NON_FINAL_AGE_MS_MAX + 1
    content = slot(copy=(5,), lake=(5,), bases=(2, 0))
    assert judge(claim(span(3, 5)), view(content, age_ms=late)).kind == OutcomeKind.COMPLETE
    assert judge(claim(span(1, 5)), view(content, age_ms=late)).kind == OutcomeKind.LOST
    assert judge(claim(span(3, 6)), view(content, age_ms=late)).reason == "tracker_silent"
    assert judge(claim(span(3, 6)), view(content, age_ms=late - 1)).kind == OutcomeKind.IN_PROGRESS


def test_a_redis_whose_clock_was_set_back_vouches_for_nothing_until_it_is_confirmed() -> None:
    content = slot(copy=(5,), lake=(5,))
    assert judge(claim(span(3, 6)), view(content, age_ms=-1)).reason == "tracker_silent"
    assert judge(claim(span(3, 5)), view(content, age_ms=-1)).kind == OutcomeKind.COMPLETE


def test_a_runner_is_silent_by_the_trackers_clock_and_the_age_of_what_it_told() -> None:
    """No clock of this host, nor of the runner's, has a part in it."""
    content = slot(lifecycle=life("Running"), heard_at=NOW - HEARTBEAT_AGE_MS_MAX + 1_000)
    for age_ms, expected in ((1_000, None), (1_001, "runner_silent")):
        judgement = judge(claim(span(0, 5)), view(content, age_ms=age_ms))
        assert [stage.blocked_by for stage in judgement.stages] == [expected] * 2


LONG_AGO = NOW - HEARTBEAT_AGE_MS_MAX - 1


@pytest.mark.parametrize(
    ("phase", "heard_at", "expected"),
    [
        (None, 0, None),
        ("Running", NOW, None),
        ("Starting", NOW, None),
        ("Stopped", NOW, "stage_stopped"),
        ("Failed", NOW, "stage_failed"),
        ("Draining", NOW, "stage_stopped"),
        ("CheckpointStopping", NOW, "stage_stopped"),
        ("Stopping", NOW, "stage_stopped"),
        ("Restarting", NOW, None),
        ("Finishing", NOW, "not_running"),
        ("Finished", NOW, "not_running"),
        ("Finished", LONG_AGO, "not_running"),
        ("Recovering", NOW, "recovering"),
        ("Running", LONG_AGO, "runner_silent"),
        ("Recovering", LONG_AGO, "runner_silent"),
        ("Stopped", LONG_AGO, "stage_stopped"),
    ],
)
def test_what_blocks_is_told(phase: str | None, heard_at: int, expected: str | None) -> None:
    event = None if phase is None else life(phase)
    judgement = judge(claim(span(0, 5)), view(slot(lifecycle=event, heard_at=heard_at)))
    assert [stage.blocked_by for stage in judgement.stages] == [expected] * 2


@pytest.mark.parametrize(
    ("phase", "heard_at", "expected"),
    [
        ("Running", NOW, "blocked_by_open_transaction"),
        ("Running", LONG_AGO, "runner_silent"),
        ("Starting", NOW, "blocked_by_open_transaction"),
        ("Recovering", NOW, "recovering"),
        ("Failed", NOW, "stage_failed"),
    ],
)
def test_what_a_driver_waits_for_is_told_while_there_is_one(
    phase: str, heard_at: int, expected: str | None
) -> None:
    content = slot(lifecycle=life(phase), heard_at=heard_at)
    waiting = replace(content, blocked_by="blocked_by_open_transaction")
    judgement = judge(claim(span(0, 5)), view(waiting))
    assert [stage.blocked_by for stage in judgement.stages] == [expected] * 2


@pytest.mark.parametrize(
    ("awaited_since", "expected"), [(0, "in_progress"), (1, "in_progress"), (2, "complete")]
)
def test_a_token_waits_for_sinks_that_are_awaited_since_it_was_born(
    awaited_since: int, expected: str
) -> None:
    """As a console is, once it is the only sink of its stage."""
    content = slot(copy=(4,), lake=(5,))
    enrich, load = stages_of(content)
    sinks = tuple(
        replace(sink, awaited_since=awaited_since) if sink.name == "copy" else sink
        for sink in enrich.sinks
    )
    content = with_stages(content, replace(enrich, sinks=sinks), load)
    assert judge(claim(span(3, 5)), view(content)).kind == expected


LAKE_WAITS = SinkWait(stage="load", sink="lake", blocked_by="sink_retrying", message="no answer")


@pytest.mark.parametrize(
    ("phase", "heard_at", "expected"),
    [
        ("Running", NOW, "sink_retrying"),
        ("Recovering", NOW, "sink_retrying"),
        ("Starting", NOW, "sink_retrying"),
        ("Stopped", NOW, "stage_stopped"),
        ("Recovering", LONG_AGO, "runner_silent"),
    ],
)
def test_a_sink_that_is_waited_for_is_named(phase: str, heard_at: int, expected: str) -> None:
    content = slot(lifecycle=life(phase), heard_at=heard_at)
    judgement = judge(claim(span(0, 5)), view(replace(content, waits=(LAKE_WAITS,))))
    enrich, load = judgement.stages
    assert enrich.blocked_by != "sink_retrying"
    assert load.blocked_by == expected
    waited = [sink.wait for sink in load.sinks]
    assert waited == [LAKE_WAITS if expected == "sink_retrying" else None]


FAILED = Condition(stage="load", cause="stage_failed", since=NOW, message="too many die")


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Running", [None, "stage_failed"]), ("Stopped", ["stage_stopped"] * 2)],
)
def test_a_stage_that_has_failed_alone_is_named(phase: str, expected: list[str | None]) -> None:
    content = replace(slot(lifecycle=life(phase)), conditions=(FAILED,))
    judgement = judge(claim(span(0, 5)), view(content))
    assert [stage.blocked_by for stage in judgement.stages] == expected


def test_a_sink_that_has_all_of_the_token_is_not_waited_for() -> None:
    content = slot(copy=(5,), lake=(5,), lifecycle=life("Recovering"), heard_at=NOW)
    judgement = judge(claim(span(0, 5)), view(replace(content, waits=(LAKE_WAITS,))))
    assert judgement.kind == OutcomeKind.COMPLETE
    assert [sink.wait for stage in judgement.stages for sink in stage.sinks] == [None] * 3


def grown(*, since: int, late_base: int) -> Slot:
    """`slot` with lake at 9, after a stage was added that reads the same input from `late_base`."""
    content = slot(copy=(9,), lake=(9,), generation=since)
    stages = stages_of(content)
    orders = replace(stages[0].inputs[0], bases=offsets(late_base, 0))
    sink = make_sink("new", since=since)
    late = make_stage("late", since=since, inputs=(orders,), sinks=(sink,))
    sinks = {**content.sinks, "late/new@2": SinkState(reached=offsets(late_base, 0))}
    # Listed first, so that its bases are met first.
    return replace(with_stages(content, late, *stages), sinks=sinks)


def test_a_stage_that_was_added_later_is_never_required_of_an_older_token() -> None:
    content = grown(since=2, late_base=5)
    old = judge(claim(span(2, 4), generation=1), view(content))
    assert old.kind == OutcomeKind.COMPLETE
    assert [stage.name for stage in old.stages] == ["enrich", "load"]
    assert judge(claim(span(9, 10), generation=1), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_a_newer_token_must_pass_every_stage_from_where_each_began() -> None:
    content = grown(since=2, late_base=5)
    early = judge(claim(span(2, 4), generation=2), view(content))
    assert lost(early) == [("before_start", 0, 2, 4)]
    assert judge(claim(span(6, 8), generation=2), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_the_bases_of_one_stage_say_nothing_of_another() -> None:
    content = slot(copy=(2,), lake=(2,), generation=2)
    late = grown(since=2, late_base=20)
    mixed = replace(late, sinks={**late.sinks, **content.sinks})
    assert judge(claim(span(20, 20), generation=2), view(mixed)).kind == OutcomeKind.IN_PROGRESS
