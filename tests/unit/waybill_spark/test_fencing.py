"""Whether a batch is to be written: every case, then any crash and any replay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import ORDERS_ID, make_fence, make_range
from strategies import patiently
from waybill_shared.contract.events import Fence, Range
from waybill_shared.contract.vectors import Vector, join
from waybill_spark.tracking.checkpoint import TopicOffsets
from waybill_spark.tracking.fencing import (
    AlreadyDone,
    BatchDecision,
    Diverged,
    RunOnly,
    StageInput,
    Write,
    bases_of,
    batch_runs,
    decide,
    drop_empty,
)

BASES = {(ORDERS_ID, 0): 0}
INPUT = StageInput(name="orders", topic="orders.in", topic_id=ORDERS_ID, bases={0: 5, 1: 0})
WRITE = Write(sinks=frozenset(["lake"]))


def decide_one(fence: Fence | None, runs: tuple[Range, ...], bases: Vector) -> BatchDecision:
    return decide({"lake": fence}, runs, bases)


def test_sink_without_a_fence_is_written_from_the_base() -> None:
    assert decide_one(None, (make_range(0, 3),), BASES) == WRITE


def test_sink_without_a_fence_takes_no_batch_behind_the_base() -> None:
    decision = decide_one(None, (make_range(2, 3),), BASES)
    assert isinstance(decision, Diverged)
    assert "the batch takes 2 to 3, the next one of the sink begins at 0" in decision.detail


def test_same_range_is_already_done() -> None:
    fence = make_fence((make_range(0, 3),))
    assert decide_one(fence, (make_range(0, 3),), BASES) == AlreadyDone()


def test_range_that_follows_is_written() -> None:
    assert decide_one(make_fence((make_range(0, 3),)), (make_range(3, 7),), BASES) == WRITE


@pytest.mark.parametrize(
    "run",
    [make_range(0, 7), make_range(1, 3), make_range(0, 2), make_range(2, 7), make_range(4, 7)],
    ids=["longer", "begins later", "shorter", "overlaps", "gap"],
)
def test_any_other_range_has_diverged(run: Range) -> None:
    """A checkpoint that lost its last files brings the same batch id back with a longer range."""
    decision = decide_one(make_fence((make_range(0, 3),), batch_id=1), (run,), BASES)
    assert isinstance(decision, Diverged)
    assert "orders.in[0]" in decision.detail


def test_only_sinks_that_lack_the_batch_are_written() -> None:
    fences = {"lake": make_fence((make_range(0, 3),)), "out": None}
    decision = decide(fences, (make_range(0, 3),), BASES)
    assert decision == Write(sinks=frozenset(["out"]))


def test_one_diverged_sink_stops_the_batch() -> None:
    fences = {"out": None, "lake": make_fence((make_range(0, 2),))}
    decision = decide(fences, (make_range(0, 3),), BASES)
    assert isinstance(decision, Diverged)
    assert decision.sink == "lake"


@pytest.mark.parametrize("run", [make_range(0, 3), make_range(3, 3)], ids=["repeated", "empty"])
def test_a_query_with_state_runs_what_no_sink_lacks(run: Range) -> None:
    fences = {"lake": make_fence((make_range(0, 3),))}
    assert decide(fences, (run,), BASES) == AlreadyDone()
    assert decide(fences, (run,), BASES, has_state=True) == RunOnly()


def test_one_diverged_partition_is_enough() -> None:
    fence = make_fence((make_range(0, 3), make_range(0, 3, partition=1)))
    runs = (make_range(3, 5), make_range(4, 5, partition=1))
    decision = decide_one(fence, runs, {**BASES, (ORDERS_ID, 1): 0})
    assert isinstance(decision, Diverged)
    assert "orders.in[1]" in decision.detail


def test_jump_of_a_partition_that_takes_nothing_has_diverged() -> None:
    fence = make_fence((make_range(0, 3), make_range(0, 3, partition=1)))
    bases = {**BASES, (ORDERS_ID, 1): 0}
    stands, jumped = make_range(3, 3, partition=1), make_range(5, 5, partition=1)
    assert decide_one(fence, (make_range(3, 5), stands), bases) == WRITE
    assert isinstance(decide_one(fence, (make_range(3, 5), jumped), bases), Diverged)
    assert isinstance(decide_one(fence, (jumped,), bases), Diverged)
    assert decide_one(fence, (make_range(3, 3), stands), bases) == AlreadyDone()


def test_new_partition_begins_at_its_first_record() -> None:
    fence = make_fence((make_range(0, 3),))
    assert decide_one(fence, (make_range(0, 2, partition=7),), BASES) == WRITE
    assert isinstance(decide_one(fence, (make_range(1, 2, partition=7),), BASES), Diverged)


def test_recreated_topic_is_another_topic() -> None:
    fence = make_fence((make_range(0, 3, topic_id="old"),))
    assert decide_one(fence, (make_range(0, 3),), BASES) == WRITE


def test_ranges_leave_out_what_the_batch_does_not_take() -> None:
    starts = {"orders.in": {0: 5, 1: 3}}
    ends = {"orders.in": {0: 5, 1: 4}}
    assert drop_empty(batch_runs((INPUT,), starts, ends)) == (make_range(3, 4, partition=1),)


def test_new_partition_of_a_batch_starts_at_its_base() -> None:
    starts: TopicOffsets = {"orders.in": {1: 0}}
    ends = {"orders.in": {0: 9, 1: 0, 2: 1}}
    assert drop_empty(batch_runs((INPUT,), starts, ends)) == (
        make_range(5, 9),
        make_range(0, 1, partition=2),
    )


def test_other_topics_of_a_checkpoint_are_not_its_inputs() -> None:
    assert drop_empty(batch_runs((INPUT,), {}, {"elsewhere": {0: 9}})) == ()


def test_bases_are_by_topic_id() -> None:
    assert bases_of((INPUT,)) == {(ORDERS_ID, 0): 5, (ORDERS_ID, 1): 0}


# A batch: how much of each of two partitions; then, for each time it is tried, before which sink
# the process dies.
crashes = st.lists(st.sampled_from(["lake", "out", None]), max_size=3)
batches = st.tuples(st.integers(0, 4), st.integers(0, 4), crashes)


@patiently
@given(st.lists(batches, max_size=8))
def test_rows_are_written_once_whatever_is_replayed(
    split: list[tuple[int, int, list[str | None]]],
) -> None:
    """Two sinks; a process that died begins its batch again, one that did not may do so too."""
    sinks: dict[str, Fence] = {}
    written: dict[str, list[tuple[int, int]]] = {"lake": [], "out": []}
    at, count = [0, 0], 0
    for *sizes, dies_before in split:
        runs = tuple(
            make_range(at[p], at[p] + size, partition=p) for p, size in enumerate(sizes) if size
        )
        if not runs:
            continue
        for name in [*dies_before, None]:
            _attempt(runs, count, name, sinks, written)
        at, count = [at[p] + size for p, size in enumerate(sizes)], count + 1
    for rows in written.values():
        assert sorted(rows) == [(p, offset) for p in (0, 1) for offset in range(at[p])]


def _attempt(
    runs: tuple[Range, ...],
    batch_id: int,
    dies_before: str | None,
    sinks: dict[str, Fence],
    written: dict[str, list[tuple[int, int]]],
) -> None:
    bases = {(ORDERS_ID, 0): 0, (ORDERS_ID, 1): 0}
    for name, rows in written.items():
        if name == dies_before:
            return
        decision = decide_one(sinks.get(name), runs, bases)
        assert not isinstance(decision, Diverged)
        if isinstance(decision, Write):
            rows += [(run.partition, o) for run in runs for o in range(run.start, run.end)]
            held = sinks[name].frontier if name in sinks else {}
            ends = {(run.topic_id, run.partition): run.end for run in runs}
            sinks[name] = make_fence(runs, join(held, ends), batch_id=batch_id)
