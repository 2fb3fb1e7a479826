"""What a process knows of watches: the newest of each, and whose are open."""

from dataclasses import replace

import pytest

from builders import TENANT
from watch_builders import make_watch
from waybill_shared.contract.token_life import WATCH_LIFE_MS
from waybill_shared.contract.watches import as_closed, as_reported
from waybill_shared.contract.words import WatchEnd, WatchState
from waybill_shared.topic_views.watches import WatchBook

OPEN = make_watch()
REPORTED = as_reported(OPEN, WatchEnd.COMPLETE, "e", OPEN.at + 5)
CLOSED = as_closed(OPEN)


def book_of(*watches: object) -> WatchBook:
    book = WatchBook()
    for each in watches:
        book.accept(each)  # type: ignore[arg-type]
    return book


@pytest.mark.parametrize(
    ("written", "shown", "count"),
    [
        ([OPEN], OPEN, 1),
        ([OPEN, OPEN], OPEN, 1),
        ([OPEN, REPORTED], REPORTED, 0),
        ([OPEN, CLOSED], None, 0),
        ([OPEN, CLOSED, REPORTED], None, 0),
        ([OPEN, REPORTED, CLOSED], None, 0),
        ([REPORTED], REPORTED, 0),
        ([REPORTED, OPEN], REPORTED, 0),
        ([CLOSED, OPEN], None, 0),
        ([], None, 0),
    ],
)
def test_the_newest_counts_and_what_was_closed_stays_so(
    written: list[object], shown: object, count: int
) -> None:
    book = book_of(*written)
    assert book.get(TENANT, OPEN.id) == shown
    assert book.of(TENANT) == ([] if shown is None else [shown])
    assert book.count_open(TENANT, OPEN.actor) == count
    assert [each for each in book.all() if each.open] == ([OPEN] if count else [])
    assert book.is_open(OPEN.id) is bool(count)


def test_of_another_tenant_nothing_is_shown() -> None:
    book = book_of(OPEN)
    assert (book.get("other", OPEN.id), book.of("other")) == (None, [])
    assert book.count_open("other", OPEN.actor) == 0


def test_the_newest_come_first_and_those_of_last_month_are_forgotten() -> None:
    day = WATCH_LIFE_MS // 31
    ids = [f"w{number:02}" for number in range(40)]
    watches = [replace(REPORTED, id=each, at=OPEN.at + n * day) for n, each in enumerate(ids)]
    book = book_of(*watches[20:], *watches[:20], *watches[20:])
    assert [each.id for each in book.of(TENANT)] == ids[::-1]
    book = book_of(*watches)
    assert [each.id for each in book.of(TENANT)] == ids[:7:-1]
    page = book.of(TENANT, (watches[20].at, "w20"))
    assert [each.id for each in page] == ids[19:7:-1]


def test_one_that_is_open_is_never_forgotten_whatever_the_clocks_of_others_say() -> None:
    book = book_of(OPEN, replace(OPEN, id="late", at=OPEN.at + 2 * WATCH_LIFE_MS))
    assert {each.id for each in book.all()} == {OPEN.id, "late"}


def test_of_those_that_are_open_no_more_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill_shared.topic_views.watches.ENDED_MAX", 3)
    book = book_of(*(replace(REPORTED, id=f"w{number}") for number in range(9)))
    assert {each.id for each in book.of(TENANT)} == {"w6", "w7", "w8"}


def test_a_long_token_counts_as_several_until_it_is_told() -> None:
    long = replace(OPEN, token="x" * 10_000)
    for with_tokens in (True, False):
        book = WatchBook(with_tokens=with_tokens)
        book.accept(long)
        assert book.count_open(TENANT, OPEN.actor) == 3
        book.accept(REPORTED)
        assert book.count_open(TENANT, OPEN.actor) == 0


def test_what_is_open_no_more_has_no_token() -> None:
    assert (CLOSED.token, REPORTED.token, OPEN.token != "") == ("", "", True)
    assert (REPORTED.state, CLOSED.state) == (WatchState.REPORTED, WatchState.CLOSED)


def test_a_book_without_tokens_keeps_none() -> None:
    book = WatchBook(with_tokens=False)
    book.accept(OPEN)
    assert book.get(TENANT, OPEN.id) == replace(OPEN, token="")
