"""What commits of a rewound sink change in the slot: its position, and no answer."""

from dataclasses import replace
from itertools import permutations

from builders import ORDERS_ID, make_commit, make_definition
from unit.token_tracker.chains import apply
from waybill_shared.contract.events import Commit
from waybill_shared.contract.slots import SinkState
from waybill_shared.contract.vectors import Vector

PLACE = (ORDERS_ID, 0)


def commit(sequence: int, frontier: int, rewind: int = 0, position: int | None = None) -> Commit:
    rewound: Vector = {} if position is None else {PLACE: position}
    made = make_commit({PLACE: frontier}, sequence=sequence)
    return replace(made, rewind=rewind, rewound=rewound)


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
