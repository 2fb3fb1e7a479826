"""A record that was complete, and dies when its stage reads it again: its token stays complete."""

from dataclasses import replace

from builders import ORDERS_ID, make_commit, make_definition, make_sink, make_stage
from unit.token_tracker.chains import apply
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters
from waybill_shared.contract.slots import Slot

PLACE = (ORDERS_ID, 0)
BOTH = make_definition(make_stage(sinks=(make_sink("lake"), make_sink("copy"))))


def letters(*offsets: int, sink: str | None = None) -> DeadLetters:
    return DeadLetters(
        stage="enrich",
        since=1,
        sequence=1,
        letters=tuple(
            DeadLetter(
                topic="orders.in",
                topic_id=ORDERS_ID,
                partition=0,
                offset=offset,
                sink=sink,
                reason="malformed",
                rule=None,
                message="",
                dead_topic="orders.in.dlq",
                dead_partition=0,
                dead_offset=0,
            )
            for offset in offsets
        ),
    )


def entries(slot: Slot) -> int:
    return sum(each.entries for each in slot.dead)


def test_a_record_that_every_sink_has_is_no_dead_one_of_a_token() -> None:
    has = [make_commit({PLACE: 9}), make_commit({PLACE: 9}, sink="copy")]
    slot = apply(BOTH, *has, letters(3))
    assert slot.dead_sequences == {"enrich@1": 1}
    assert entries(slot) == 0


def test_it_is_dead_for_the_sink_that_lacks_it() -> None:
    slot = apply(BOTH, make_commit({PLACE: 9}), letters(3))
    assert entries(slot) == 1


def test_what_no_sink_has_is_dead_as_ever() -> None:
    slot = apply(BOTH, make_commit({PLACE: 2}), letters(3, 4))
    assert entries(slot) == 2


def test_a_sink_that_began_later_never_had_it() -> None:
    later = make_definition(
        make_stage(sinks=(make_sink("lake"), replace(make_sink("copy"), bases={PLACE: 5})))
    )
    has = [make_commit({PLACE: 9}), make_commit({PLACE: 9}, sink="copy")]
    assert entries(apply(later, *has, letters(3))) == 1
