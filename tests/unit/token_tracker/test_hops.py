"""Which hops of a reader that lags are kept, and what that makes of `lost`."""

from dataclasses import replace
from functools import cache

import pytest

from builders import (
    TENANT,
    UID,
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_range,
    make_sink,
    make_stage,
)
from unit.token_tracker.line import Bench
from waybill_shared.contract.events import Commit, SetAside
from waybill_shared.contract.slots import Slot
from waybill_token_tracker.core import hops, snapshots
from waybill_token_tracker.core.facts import apply_fact
from waybill_token_tracker.core.hops import thin_out

RETENTION = "retention_passed"
BATCHES = 6_000
LONGEST = BATCHES // 1_000
"""So many batches may be one where a hop that was kept is far from the reader."""
CHAIN = make_definition(
    make_stage(
        "enrich",
        inputs=(make_input("orders", topic_id="R"),),
        sinks=(make_sink("out", topic_id="A", terminal=False),),
    ),
    make_stage("load", inputs=(make_input("A", topic_id="A", root=False),)),
)

EMPTY = apply_fact(Slot(tenant=TENANT, pipeline_uid=UID), make_fact(CHAIN)).slot


def enriched(batch: int, *, partitions: int = 1) -> Commit:
    """Record `batch` of R is row 2 * `batch` of A; behind it stands the marker."""
    return make_commit(
        {("R", place): batch + 1 for place in range(partitions)},
        stage="enrich",
        sink="out",
        outputs={("A", place): 2 * batch + 1 for place in range(partitions)},
        sequence=batch,
    )


def loaded(batches: int, *, sequence: int, gone: int = 0) -> Commit:
    """All that so many batches wrote was taken, but for what the first `gone` of them did."""
    commit = make_commit({("A", 0): 2 * batches}, stage="load", sequence=sequence)
    ranges = (make_range(0, 2 * gone, topic_id="A"),) if gone else ()
    return replace(commit, set_aside=(SetAside(reason=RETENTION, ranges=ranges),))


@cache
def lagging(batches: int = BATCHES) -> Slot:
    """The reader has taken nothing yet."""
    slot = EMPTY
    for batch in range(batches):
        slot = apply_fact(slot, make_fact(enriched(batch))).slot
    return slot


def reached(slot: Slot) -> int:
    return slot.sinks["load/lake@1"].reached["R", 0]


@pytest.mark.parametrize(("gone", "spare"), [(10, 0), (500, 0), (3_001, LONGEST)])
def test_retention_takes_little_more_than_it_does_from_a_reader_that_lags(
    gone: int, spare: int
) -> None:
    slot = apply_fact(lagging(), make_fact(loaded(gone, sequence=0, gone=gone))).slot
    slot = apply_fact(slot, make_fact(loaded(BATCHES, sequence=1, gone=gone))).slot
    (span,) = slot.sinks["load/lake@1"].lost[RETENTION]
    assert span.start == 0
    assert gone <= span.end <= gone + spare
    assert reached(slot) == BATCHES


def test_reader_that_catches_up_has_reached_nearly_all_that_it_has_taken() -> None:
    """What it has not reached is lost when the pipeline is deleted then."""
    slot = lagging()
    for sequence, taken in enumerate(range(1, BATCHES + 1, 7)):
        slot = apply_fact(slot, make_fact(loaded(taken, sequence=sequence))).slot
        assert taken - LONGEST < reached(slot) <= taken


def test_reader_that_never_catches_up_loses_no_more_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often hops are made one, they stay short beside how far it lags."""
    monkeypatch.setattr(hops, "HOP_OFFSETS_MAX", 300)
    slot = apply_fact(EMPTY, make_fact(enriched(0))).slot
    for batch in range(1, 3_000):
        slot = apply_fact(slot, make_fact(enriched(batch))).slot
        taken = batch // 4
        slot = apply_fact(slot, make_fact(loaded(taken, sequence=batch))).slot
        assert taken - 1 - (batch - taken) // 30 <= reached(slot) <= taken


@pytest.mark.parametrize(("partitions", "most"), [(1, 40), (5, 8), (50, hops.HOPS_MIN)])
def test_hops_of_a_reader_that_lags_have_a_bound(
    monkeypatch: pytest.MonkeyPatch, partitions: int, most: int
) -> None:
    monkeypatch.setattr(hops, "HOP_OFFSETS_MAX", 120)
    slot = EMPTY
    for batch in range(60):
        slot = apply_fact(slot, make_fact(enriched(batch, partitions=partitions))).slot
        kept = [hop.sequence for hop in slot.sinks["enrich/out@1"].hops]
        assert len(kept) <= most
        assert kept[:2] == [0, 1][: batch + 1]
        assert kept[-1] == batch
    assert len(kept) > most // 2


def test_hops_of_several_sinks_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "HOP_OFFSETS_MAX", 120)
    long, short = lagging(39).sinks["enrich/out@1"].hops, lagging(9).sinks["enrich/out@1"].hops
    kept = thin_out({"a": short, "b": long, "c": short}, {"a": 0, "b": 0, "c": 0})
    assert kept["a"] == kept["c"] == short
    assert len(kept["b"]) <= 40 - 9 - 9


def test_who_takes_over_has_reached_what_the_one_before_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever has room in a snapshot."""
    monkeypatch.setattr(snapshots, "PACKED_CHARACTERS_MAX", 0)
    bench = Bench()
    bench.applied(make_fact(CHAIN), *(make_fact(enriched(batch)) for batch in range(30)))
    bench.tracker.save(whole=True)
    bench.applied(make_fact(loaded(15, sequence=0)))
    before = [reached(slot) for slot in bench.tracker.slots()]
    bench.restart()
    bench.feed()
    assert [reached(slot) for slot in bench.tracker.slots()] == before == [15]
