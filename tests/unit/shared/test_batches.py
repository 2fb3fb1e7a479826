"""Reports of batches as they follow each other in one sink."""

from dataclasses import replace

from builders import make_batch
from waybill_shared.contract.batches import follow, later


def test_a_fence_has_the_next_number_and_what_was_dropped_until_then() -> None:
    before = make_batch(4, dropped={"orders.a": 2}, dead_sequence=3)
    batch = make_batch(0, batch_id=9, dropped={"orders.a": 1, "orders.b": 5})
    after = follow(before, batch)
    assert (after.sequence, after.batch_id, after.dead_sequence) == (5, 9, 3)
    assert after.dropped == {"orders.a": 3, "orders.b": 5}
    assert follow(None, batch) == batch


def test_the_later_report_counts_and_is_past_the_dead_of_both() -> None:
    old, new = make_batch(1, dead_sequence=7), make_batch(2)
    assert later(old, new) == later(new, old) == replace(new, dead_sequence=7)
    assert later(None, new) == new
