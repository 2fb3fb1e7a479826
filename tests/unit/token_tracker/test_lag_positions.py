"""How far a stage has come never looks better than it is."""

from dataclasses import replace

import pytest

from builders import ORDERS_ID, TENANT, UID, make_definition, make_input, make_sink, make_stage
from waybill_shared.contract.events import Definition
from waybill_shared.contract.slots import Removal, SinkState, Slot
from waybill_shared.contract.vectors import ENDLESS, Vector
from waybill_token_tracker.core.lag_positions import (
    LagPosition,
    count_unread,
    deleted_stages,
    positions,
)


def make_slot(definition: Definition | None = None, **frontiers: Vector) -> Slot:
    """Frontiers by the name of the sink of stage `enrich`."""
    return Slot(
        tenant=TENANT,
        pipeline_uid=UID,
        definition=definition or make_definition(),
        sinks={f"enrich/{sink}@1": SinkState(frontier=at) for sink, at in frontiers.items()},
    )


def only(slot: Slot) -> LagPosition:
    (found,) = positions([slot])
    return found


TWO_SINKS = make_definition(make_stage(sinks=(make_sink("lake"), make_sink("copy"))))


def test_the_slowest_sink_counts() -> None:
    slot = make_slot(TWO_SINKS, lake={(ORDERS_ID, 0): 9}, copy={(ORDERS_ID, 0): 4})

    assert only(slot).offset(ORDERS_ID, 0) == 4


def test_what_is_read_again_is_lag() -> None:
    slot = make_slot(lake={(ORDERS_ID, 0): 9})
    (key,) = slot.sinks
    state = replace(slot.sinks[key], rewind=1, rewound={(ORDERS_ID, 0): 2})

    assert only(replace(slot, sinks={key: state})).offset(ORDERS_ID, 0) == 2


def test_a_sink_that_has_not_reported_stands_where_its_stage_began() -> None:
    stage = make_stage(
        inputs=(make_input(bases=(3,)),), sinks=(make_sink("lake"), make_sink("copy"))
    )
    slot = make_slot(make_definition(stage), lake={(ORDERS_ID, 0): 9})

    assert only(slot).offset(ORDERS_ID, 0) == 3


def test_a_sink_that_came_later_stands_where_it_is_to_begin() -> None:
    later = replace(make_sink("copy"), bases={(ORDERS_ID, 0): 7})
    stage = make_stage(sinks=(make_sink("lake"), later))
    slot = make_slot(make_definition(stage), lake={(ORDERS_ID, 0): 9})

    assert only(slot).offset(ORDERS_ID, 0) == 7


def test_a_partition_that_was_added_is_all_to_come() -> None:
    slot = make_slot(lake={(ORDERS_ID, 0): 9})

    assert only(slot).offset(ORDERS_ID, 1) == 0


def test_where_nothing_will_come_any_more_is_no_offset() -> None:
    assert only(make_slot(lake={(ORDERS_ID, 0): ENDLESS})).offset(ORDERS_ID, 0) is None


def test_behind_counts_to_the_ends_and_never_below_zero() -> None:
    position = {(ORDERS_ID, 0): 4, (ORDERS_ID, 1): 9, (ORDERS_ID, 2): ENDLESS}

    assert count_unread(position, ORDERS_ID, {0: 6, 1: 8, 2: 5, 3: 10}) == 2 + 10


@pytest.mark.parametrize("definition", [make_definition(deleted=True), None])
def test_only_living_pipelines_stand_anywhere(definition: Definition | None) -> None:
    slot = Slot(tenant=TENANT, pipeline_uid=UID, definition=definition)

    assert positions([slot]) == []


def test_deleted_pipelines_and_removed_stages_have_departed() -> None:
    removal = Removal(generation=2, stages=(make_stage("old"),))
    living = replace(make_slot(), removals=(removal,))

    assert deleted_stages([living]) == {("orders", "old")}
    assert deleted_stages([make_slot(make_definition(deleted=True))]) == {("orders", "enrich")}
