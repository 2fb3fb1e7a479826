"""Whether a batch is to be written: every case, then any crash and any replay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import ORDERS_ID, make_fence, make_range
from shared.events import Fence, Range
from waybill.spark.checkpoint import TopicOffsets
from waybill.spark.fencing import (
    AlreadyDone,
    Diverged,
    StageInput,
    Write,
    bases_of,
    batch_ranges,
    decide,
)

BASES = {(ORDERS_ID, 0): 0}
INPUT = StageInput(name="orders", topic="orders.in", topic_id=ORDERS_ID, bases={0: 5, 1: 0})


def test_sink_without_a_fence_is_written_from_the_base() -> None:
    decision = decide(None, (make_range(0, 3),), BASES)
    assert decision == Write(sequence=0, frontier={(ORDERS_ID, 0): 3})


def test_sink_without_a_fence_takes_no_batch_behind_the_base() -> None:
    decision = decide(None, (make_range(2, 3),), BASES)
    assert isinstance(decision, Diverged)
    assert "the batch takes 2 to 3, the sink holds everything below 0" in decision.detail


def test_same_range_is_already_done() -> None:
    fence = make_fence((make_range(0, 3),))
    assert decide(fence, (make_range(0, 3),), BASES) == AlreadyDone(fence=fence)


def test_range_that_follows_is_written() -> None:
    decision = decide(make_fence((make_range(0, 3),), sequence=4), (make_range(3, 7),), BASES)
    assert decision == Write(sequence=5, frontier={(ORDERS_ID, 0): 7})


@pytest.mark.parametrize(
    "run",
    [make_range(0, 7), make_range(1, 3), make_range(0, 2), make_range(2, 7), make_range(4, 7)],
    ids=["longer", "begins later", "shorter", "overlaps", "gap"],
)
def test_any_other_range_has_diverged(run: Range) -> None:
    """A checkpoint that lost its last files brings the same batch id back with a longer range."""
    decision = decide(make_fence((make_range(0, 3),), batch_id=1), (run,), BASES)
    assert isinstance(decision, Diverged)
    assert "orders.in[0]" in decision.detail


def test_one_diverged_partition_is_enough() -> None:
    fence = make_fence((make_range(0, 3), make_range(0, 3, partition=1)))
    runs = (make_range(3, 5), make_range(4, 5, partition=1))
    decision = decide(fence, runs, {**BASES, (ORDERS_ID, 1): 0})
    assert isinstance(decision, Diverged)
    assert "orders.in[1]" in decision.detail


def test_partition_that_rests_stays_in_the_frontier() -> None:
    fence = make_fence((make_range(0, 3), make_range(0, 9, partition=1)))
    decision = decide(fence, (make_range(3, 4),), {**BASES, (ORDERS_ID, 1): 0})
    assert decision == Write(sequence=1, frontier={(ORDERS_ID, 0): 4, (ORDERS_ID, 1): 9})


def test_new_partition_begins_where_the_batch_says() -> None:
    decision = decide(make_fence((make_range(0, 3),)), (make_range(40, 41, partition=7),), BASES)
    assert isinstance(decision, Write)
    assert decision.frontier == {(ORDERS_ID, 0): 3, (ORDERS_ID, 7): 41}


def test_recreated_topic_is_another_topic() -> None:
    fence = make_fence((make_range(0, 3, topic_id="old"),))
    decision = decide(fence, (make_range(0, 3),), BASES)
    assert decision == Write(sequence=1, frontier={("old", 0): 3, (ORDERS_ID, 0): 3})


def test_ranges_leave_out_what_the_batch_does_not_take() -> None:
    starts = {"orders.in": {0: 5, 1: 3}}
    ends = {"orders.in": {0: 5, 1: 4}}
    assert batch_ranges((INPUT,), starts, ends) == (make_range(3, 4, partition=1),)


def test_new_partition_of_a_batch_starts_at_its_base() -> None:
    starts: TopicOffsets = {"orders.in": {1: 0}}
    ends = {"orders.in": {0: 9, 1: 0, 2: 1}}
    assert batch_ranges((INPUT,), starts, ends) == (
        make_range(5, 9),
        make_range(0, 1, partition=2),
    )


def test_other_topics_of_a_checkpoint_are_not_its_inputs() -> None:
    assert batch_ranges((INPUT,), {}, {"elsewhere": {0: 9}}) == ()


def test_bases_are_by_topic_id() -> None:
    assert bases_of((INPUT,)) == {(ORDERS_ID, 0): 5, (ORDERS_ID, 1): 0}


END = 12


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[Range, ...]]:
    """Any split of two partitions' offsets into batches that take something."""
    at, split = {0: 0, 1: 0}, []
    while min(at.values()) < END and len(split) < 12:
        runs = []
        for partition, start in at.items():
            end = min(start + draw(st.integers(0, 5)), END)
            if start < end:
                runs.append(make_range(start, end, partition=partition))
                at[partition] = end
        if runs:
            split.append(tuple(runs))
    return split


@given(batches(), st.data())
def test_rows_are_written_once_whatever_is_replayed(
    split: list[tuple[Range, ...]], data: st.DataObject
) -> None:
    """Two sinks; the process may die before each sink's write, and begins that batch again."""
    sinks: dict[str, Fence] = {}
    written: dict[str, list[tuple[int, int]]] = {"lake": [], "out": []}
    bases = {(ORDERS_ID, 0): 0, (ORDERS_ID, 1): 0}
    for batch_id, runs in enumerate(split):
        for _ in range(data.draw(st.integers(0, 2)) + 1):
            dies_before = data.draw(st.sampled_from([None, "lake", "out"]))
            _attempt(runs, batch_id, dies_before, sinks, written, bases)
        _attempt(runs, batch_id, None, sinks, written, bases)
    expected = sorted(
        (r.partition, o) for runs in split for r in runs for o in range(r.start, r.end)
    )
    for name, rows in written.items():
        assert sorted(rows) == expected
        assert sinks[name].sequence == len(split) - 1


def _attempt(
    runs: tuple[Range, ...],
    batch_id: int,
    dies_before: str | None,
    sinks: dict[str, Fence],
    written: dict[str, list[tuple[int, int]]],
    bases: dict[tuple[str, int], int],
) -> None:
    for name, rows in written.items():
        if name == dies_before:
            return
        decision = decide(sinks.get(name), runs, bases)
        assert not isinstance(decision, Diverged)
        if isinstance(decision, Write):
            rows += [(run.partition, o) for run in runs for o in range(run.start, run.end)]
            sinks[name] = make_fence(
                runs, decision.frontier, sequence=decision.sequence, batch_id=batch_id
            )
