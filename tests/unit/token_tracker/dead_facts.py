"""Facts of records that died, and what a slot makes of them."""

from collections.abc import Sequence

from builders import TENANT, UID, make_fact, with_batch
from message_builders import make_letter
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters
from waybill_shared.contract.events import Commit, Definition
from waybill_shared.contract.slots import DeadEntry, Slot
from waybill_token_tracker.core.facts import apply_fact

EMPTY = Slot(tenant=TENANT, pipeline_uid=UID)
LAKE = "load/lake@1"
Body = Definition | Commit | DeadLetters


def letter(offset: int, *, topic_id: str = "R", sink: str | None = None) -> DeadLetter:
    return make_letter(offset, topic_id=topic_id, sink=sink, dead_offset=100 + offset)


def died(*letters: DeadLetter, sequence: int = 1, stage: str = "enrich") -> DeadLetters:
    return DeadLetters(stage=stage, since=1, sequence=sequence, letters=letters)


def past(commit: Commit, dead_sequence: int) -> Commit:
    return with_batch(commit, dead_sequence=dead_sequence)


def applied(*bodies: Body, slot: Slot = EMPTY) -> tuple[Slot, list[DeadEntry]]:
    found: list[DeadEntry] = []
    for body in bodies:
        one = apply_fact(slot, make_fact(body))
        slot = one.slot
        found += one.dead
    return slot, found


def places(entries: Sequence[DeadEntry]) -> list[tuple[str, int, int, int, bool]]:
    return [(e.topic_id, e.start, e.end, e.up_to, e.exact) for e in entries]


def reached(slot: Slot, key: str) -> int:
    return slot.sinks[key].reached.get(("R", 0), 0)
