"""Of each batch the tracker counts one, however often it is told of it."""

from dataclasses import replace

import pytest

from builders import (
    TENANT,
    UID,
    make_commit,
    make_definition,
    make_fact,
    make_range,
    make_sink,
    make_stage,
    with_batch,
)
from scraping import Scrape, read_scrape
from unit.token_tracker.line import Bench
from waybill_shared.contract.events import Commit, Fact
from waybill_shared.contract.slots import Slot
from waybill_shared.process import metrics
from waybill_token_tracker.app.measuring import measure, show_sinks
from waybill_token_tracker.core.facts import apply_fact

SINK = {"pipeline": "orders", "stage": "enrich", "sink": "lake"}


def shown() -> Scrape:
    return read_scrape(metrics.text_of("token_tracker", {}).decode())


def batch(*, sequence: int, took_ms: int = 250) -> Commit:
    commit = make_commit(sequence=sequence)
    took = with_batch(commit, committed_at=commit.batch.started_at + took_ms)
    return replace(took, inputs=(make_range(),))


class Measured:
    def __init__(self) -> None:
        metrics.forget("orders")
        show_sinks(())  # another test of this process may have shown its own
        self.slot = Slot(tenant=TENANT, pipeline_uid=UID)
        self.take(make_fact(make_definition()))

    def take(self, fact: Fact) -> None:
        after = apply_fact(self.slot, fact).slot
        measure(self.slot, fact, after)
        self.slot = after


@pytest.fixture
def measured() -> Measured:
    return Measured()


def test_a_repeated_commit_is_the_same_batch(measured: Measured) -> None:
    for sequence in (0, 0, 1, 1, 0):
        measured.take(make_fact(batch(sequence=sequence)))

    assert shown().value("waybill_batches_total", **SINK) == 2
    assert shown().value("waybill_batch_rows_total", **SINK) == 2
    assert shown().value("waybill_batch_seconds_sum", **SINK) == 0.5


def test_what_is_set_aside_is_no_batch(measured: Measured) -> None:
    measured.take(make_fact(make_commit(sequence=0)))

    assert shown().value("waybill_batches_total", **SINK) is None


def test_a_batch_that_another_driver_wrote_has_no_time(measured: Measured) -> None:
    measured.take(make_fact(batch(sequence=0, took_ms=0)))

    assert shown().value("waybill_batches_total", **SINK) == 1
    assert shown().value("waybill_batch_seconds_count", **SINK) is None


def test_a_sink_that_was_removed_is_shown_no_more(measured: Measured) -> None:
    measured.take(make_fact(batch(sequence=0)))
    measured.take(make_fact(make_definition(make_stage(sinks=(make_sink("copy"),))), generation=2))
    measured.take(make_fact(batch(sequence=1)))

    assert not shown().names(**SINK)


def test_slots_that_redis_has_lost_are_counted() -> None:
    bench = Bench()
    bench.append(make_fact(make_definition()))
    bench.feed()
    before = shown().value("waybill_slot_rebuilds_total") or 0
    bench.tracker.flush()  # finds no slot yet
    bench.tracker.flush()
    assert shown().value("waybill_slot_rebuilds_total") == before

    bench.store.slots.clear()
    bench.tracker.confirm()

    assert shown().value("waybill_slot_rebuilds_total") == before + 1


def test_a_deleted_pipeline_is_shown_no_more_and_its_late_commits_neither(
    measured: Measured,
) -> None:
    measured.take(make_fact(batch(sequence=0)))
    measured.take(make_fact(make_definition(deleted=True), generation=2))
    measured.take(make_fact(batch(sequence=1)))

    assert not shown().names(pipeline="orders")


def test_pipeline_is_shown_under_its_present_name_alone(measured: Measured) -> None:
    measured.take(make_fact(batch(sequence=1)))
    assert shown().names(pipeline="orders")
    renamed = replace(make_definition(), name="sales", was=("orders",))
    measured.take(make_fact(renamed, generation=2))
    measured.take(make_fact(batch(sequence=2), generation=2))
    assert shown().names(pipeline="orders") == set()
    assert shown().value("waybill_batches_total", **{**SINK, "pipeline": "sales"}) == 1
    metrics.forget("sales")
