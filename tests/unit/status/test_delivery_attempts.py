"""What follows from an attempt to send an event, and what is remembered of it."""

from dataclasses import replace
from itertools import pairwise

import pytest

from builders import NOW as MADE
from clocks import NOW
from unit.status.delivering import BUSY, SILENT
from watch_builders import make_delivery
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.words import DeliveryState
from waybill_status.core.watches.deliveries import (
    FIRST_PAUSE_MS,
    JITTER,
    PAUSE_MS_MAX,
    TRIED_MS,
    Answered,
    after_attempt,
    wait_ms,
)
from waybill_status.core.watches.delivery_book import DeliveryBook

HOUR_MS = 3_600_000


def attempts(answer: Answered, *, luck: float = 0.0) -> list[WebhookDelivery]:
    """Each as it was left, when every attempt is made in time and gets that answer."""
    found = [replace(make_delivery(), since=MADE, next_at=MADE)]
    while found[-1].due:
        last = found[-1]
        found.append(after_attempt(last, answer, now_ms=last.next_at, took_ms=0, luck=luck))
    return found[1:]


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_whatever_is_well_is_delivered_and_nothing_secret_is_left(status: int) -> None:
    (only,) = attempts(Answered(status=status))
    assert (only.state, only.attempts, only.error) == (DeliveryState.DELIVERED, 1, None)
    assert (only.event, only.webhook.secret) == ("", "")


@pytest.mark.parametrize("answer", [BUSY, SILENT, Answered(status=302, error="moved")])
def test_all_else_is_tried_for_a_day_at_growing_pauses(answer: Answered) -> None:
    tried = attempts(answer)
    times = [each.at - MADE for each in tried if each.at is not None]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:4] == [5_000, 10_000, 20_000, 40_000]
    assert max(pauses) == PAUSE_MS_MAX
    assert times[-1] == TRIED_MS
    assert [each.state for each in tried] == [DeliveryState.DUE] * 33 + [DeliveryState.FAILED]
    assert {each.error for each in tried} == {answer.error}
    assert all(each.event for each in tried[:-1])


def test_one_that_wants_no_more_is_left_alone() -> None:
    (only,) = attempts(Answered(status=410, error="it answered 410"))
    assert (only.state, only.attempts) == (DeliveryState.FAILED, 1)


def test_luck_makes_pauses_longer_and_a_webhook_may_ask_for_more() -> None:
    one = after_attempt(make_delivery(), BUSY, now_ms=MADE, took_ms=0, luck=1.0)
    assert one.next_at - MADE == FIRST_PAUSE_MS * (1 + JITTER)
    for hours, heeded_ms in ((2, 2 * HOUR_MS), (99, TRIED_MS)):
        asked = replace(BUSY, retry_after_ms=hours * HOUR_MS)
        after = after_attempt(make_delivery(), asked, now_ms=MADE, took_ms=0, luck=0.5)
        assert after.next_at == MADE + heeded_ms


@pytest.mark.parametrize("ahead_ms", [-99 * HOUR_MS, -HOUR_MS, HOUR_MS, TRIED_MS, 99 * HOUR_MS])
def test_whoever_tries_it_by_another_clock_gives_it_no_less_and_no_more_time(ahead_ms: int) -> None:
    tried = [replace(make_delivery(), since=MADE, next_at=MADE)]
    while tried[-1].due:
        last, by = tried[-1], ahead_ms if len(tried) % 2 else -ahead_ms
        tried.append(after_attempt(last, BUSY, now_ms=last.next_at + by, took_ms=0, luck=0.0))
    assert len(tried[1:]) == len(attempts(BUSY))


def test_what_an_attempt_took_with_the_wait_for_its_turn_is_time_in_which_it_was_tried() -> None:
    one = after_attempt(make_delivery(), BUSY, now_ms=MADE, took_ms=TRIED_MS - 1, luck=0.0)
    assert (one.state, one.next_at) == (DeliveryState.DUE, MADE + 1)
    last = after_attempt(make_delivery(), BUSY, now_ms=MADE, took_ms=TRIED_MS, luck=0.0)
    assert last.state == DeliveryState.FAILED


def test_a_clock_that_was_set_back_makes_nobody_wait_longer() -> None:
    due = after_attempt(make_delivery(), BUSY, now_ms=MADE, took_ms=0, luck=0.0)
    assert wait_ms(due, MADE) == 5_000
    assert wait_ms(due, MADE + 6_000) == 0
    assert wait_ms(make_delivery(), MADE - 99 * HOUR_MS) <= PAUSE_MS_MAX * (1 + JITTER)
    assert wait_ms(due, MADE - 99 * HOUR_MS) <= PAUSE_MS_MAX * (1 + JITTER)
    asked = after_attempt(
        make_delivery(), replace(BUSY, retry_after_ms=3 * HOUR_MS), now_ms=MADE, took_ms=0, luck=0.0
    )
    assert wait_ms(asked, MADE - 99 * HOUR_MS) == 3 * HOUR_MS


def test_a_book_knows_the_newest_and_forgets_the_oldest_that_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("waybill_status.core.watches.delivery_book.ENDED_MAX", 2)
    book, due = DeliveryBook(), make_delivery()
    over = [replace(due.ended(DeliveryState.DELIVERED, NOW + n), watch=f"w{n}") for n in range(4)]
    for each in (due, *over, replace(due, watch="w3")):
        book.accept(each)
    assert [book.get(f"w{n}") for n in range(4)] == [None, None, *over[2:]]
    assert [*book.all_due()] == [due]
    ended = due.ended(DeliveryState.FAILED, NOW + 9, "no")
    book.accept(ended)
    assert (book.get(due.watch), [*book.all_due()]) == (ended, [])
    book.accept(due)
    assert book.get(due.watch) == ended, "what is heard again takes nothing back"
    book.accept(replace(due, redelivery=1))
    book.accept(ended)
    assert book.get(due.watch) == replace(due, redelivery=1)
