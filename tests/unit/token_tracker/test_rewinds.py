"""What commits of a rewound sink change in the slot: its position, and no answer."""

from dataclasses import replace
from itertools import islice, permutations

from builders import ORDERS_ID, make_commit, make_definition
from unit.token_tracker.chains import apply
from waybill_shared.contract.events import Commit, Output
from waybill_shared.contract.slots import SinkState
from waybill_shared.contract.vectors import Vector

PLACE = (ORDERS_ID, 0)


def commit(sequence: int, frontier: int, rewind: int = 0, position: int | None = None) -> Commit:
    rewound: Vector = {} if position is None else {PLACE: position}
    made = make_commit({PLACE: frontier}, sequence=sequence)
    return replace(made, rewind=rewind, rewound=rewound)


def written(sequence: int, end: int, rewind: int = 0, position: int | None = None) -> Commit:
    """A commit of a sink that has written to its topic up to `end`."""
    outputs = (Output(topic="hop", topic_id="hop", partition=0, first=0, end=end),)
    return replace(commit(sequence, 9, rewind, position), outputs=outputs)


def state_after(*commits: Commit) -> SinkState:
    return apply(make_definition(), *commits).sinks["enrich/lake@1"]


def test_a_rewound_sink_stays_reached_and_its_position_goes_back() -> None:
    state = state_after(commit(0, 9), commit(1, 9, 1, 2))
    assert (state.frontier, state.reached) == ({PLACE: 9}, {PLACE: 9})
    assert (state.rewind, state.position) == (1, {PLACE: 2})


def test_position_comes_to_the_frontier_again() -> None:
    state = state_after(commit(0, 9), commit(1, 9, 1, 2), commit(2, 9, 1, 5), commit(3, 12, 1))
    assert (state.frontier, state.position, state.rewound) == ({PLACE: 12}, {PLACE: 12}, {})


def test_any_order_of_commits_gives_one_position() -> None:
    commits = [commit(0, 9), commit(1, 9, 1, 2), commit(2, 9, 1, 5), commit(3, 9, 2, 3)]
    found = [state_after(*order, order[0]) for order in permutations(commits)]
    assert {(s.rewind, s.position[PLACE], s.frontier[PLACE]) for s in found} == {(2, 3, 9)}


def test_any_order_of_commits_says_where_what_was_written_again_ends() -> None:
    old = [written(0, 10), written(1, 10, 1, 2), written(2, 15, 1)]
    new = [written(3, 15, 2, 3), written(4, 18, 2, 5), written(5, 20, 2), written(6, 24, 2)]
    orders = permutations(old + new)
    found = [state_after(*order, order[0]).rewritten for order in islice(orders, 0, None, 7)]
    assert all(each == {("hop", 0): 20} for each in found)


def test_what_is_written_again_has_no_end_before_it_is_done() -> None:
    assert state_after(written(0, 10), written(1, 12, 1, 2)).rewritten == {}
    assert state_after(written(0, 10)).rewritten == {}, "nothing was"
    done = (written(0, 10), written(1, 12, 1, 2), written(2, 15, 1))
    assert state_after(*done, written(3, 15, 2, 4)).rewritten == {}, "it begins again"
