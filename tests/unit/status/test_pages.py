"""Pages of dead letters: the newest of all partitions first, each once, wherever a page ends."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import compress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently
from unit.status.letters import letter
from waybill_status.core.dead_letters.dead_letter_view import DeadLetterSummary
from waybill_status.core.dead_letters.pages import (
    OFFSETS_MAX,
    ROUND_MAX,
    Backwards,
    Bounds,
    Partition,
    cut,
    read_cursor,
    write_cursor,
)


@dataclass
class Topics:
    """What stands where; `rounds` are the offsets that were asked for, in their order."""

    letters: Mapping[Partition, Mapping[int, int]]
    """By partition: at which offsets letters are, and of what time."""
    ends: Mapping[Partition, int]
    looked_at: int = 0
    rounds: int = 0

    def bounds(self) -> Bounds:
        return {place: (0, end) for place, end in self.ends.items()}

    def page(self, limit: int, cursor: str | None) -> tuple[list[DeadLetterSummary], str | None]:
        bounds = self.bounds()
        if cursor is not None:
            left = read_cursor(cursor)
            assert left is not None
            bounds = cut(bounds, left)
        pages = Backwards(bounds, limit)
        while asked := pages.round():
            self.rounds += 1
            self.looked_at += sum(end - start for start, end in asked.values())
            pages.take(asked, {place: self._read(place, *ends) for place, ends in asked.items()})
        return pages.items, write_cursor(pages.left())

    def _read(self, place: Partition, start: int, end: int) -> list[DeadLetterSummary]:
        topic, partition = place
        return [
            letter(topic=topic, partition=partition, offset=offset, at=at)
            for offset, at in sorted(self.letters.get(place, {}).items())
            if start <= offset < end
        ]

    def all(self, limit: int) -> list[list[DeadLetterSummary]]:
        pages, cursor = [], None
        while True:
            items, cursor = self.page(limit, cursor)
            pages.append(items)
            if cursor is None:
                return pages


def spot(each: DeadLetterSummary) -> tuple[str, int, int]:
    return each.topic, each.partition, each.offset


places = st.tuples(st.sampled_from(["a.dlq", "b.dlq"]), st.integers(0, 2))
offsets = st.dictionaries(st.integers(0, 60), st.integers(0, 9), max_size=12)


@patiently
@given(st.dictionaries(places, offsets, max_size=4), st.integers(1, 7))
def test_all_pages_together_have_each_letter_once(
    letters: dict[Partition, dict[int, int]], limit: int
) -> None:
    topics = Topics(letters, dict.fromkeys(letters, 61))
    pages = topics.all(limit)
    told = [spot(each) for page in pages for each in page]
    assert sorted(told) == sorted((*p, offset) for p, mine in letters.items() for offset in mine)
    assert all(len(page) == limit for page in pages[:-1] if page)
    for place in letters:
        mine = [offset for *at, offset in told if tuple(at) == place]
        assert mine == sorted(mine, reverse=True), "of one partition in the order of offsets"


@patiently
@given(st.dictionaries(places, st.integers(0, 12), max_size=4), st.integers(1, 7))
def test_where_times_go_with_offsets_the_newest_come_first(
    counts: dict[Partition, int], limit: int
) -> None:
    letters = {
        place: {offset: 10 * offset + shift for offset in range(count)}
        for shift, (place, count) in enumerate(counts.items())
    }
    pages = Topics(letters, counts).all(limit)
    times = [each.at for page in pages for each in page]
    assert times == sorted(times, reverse=True)


def test_a_page_reads_little_more_than_it_tells() -> None:
    topics = Topics({("a", 0): dict.fromkeys(range(100_000), 1)}, {("a", 0): 100_000})
    items, cursor = topics.page(50, None)
    assert [each.offset for each in items] == [*range(99_999, 99_949, -1)]
    assert (topics.looked_at, topics.rounds) == (50, 1)
    items, _ = topics.page(50, cursor)
    assert items[0].offset == 99_949


def test_what_is_seldom_is_looked_for_in_larger_steps_up_to_a_limit() -> None:
    topics = Topics({("a", 0): {3: 1}}, {("a", 0): 3 * OFFSETS_MAX})
    items, cursor = topics.page(10, None)
    assert items == []
    assert cursor is not None
    assert OFFSETS_MAX <= topics.looked_at < OFFSETS_MAX + ROUND_MAX
    assert topics.rounds < 12
    assert [len(page) for page in topics.all(10)] == [0, 0, 1]


def test_many_partitions_are_read_together() -> None:
    letters = {("a", at): {0: at} for at in range(300)}
    topics = Topics(letters, dict.fromkeys(letters, 1))
    (items,) = topics.all(1_000)
    assert [each.partition for each in items] == [*range(299, -1, -1)]
    assert topics.rounds == 1


def test_a_cursor_is_short_and_comes_back() -> None:
    left = {("orders.in.dlq", at): 1_000_000 + 977 * at for at in range(64)}
    cursor = write_cursor(left)
    assert cursor is not None
    assert read_cursor(cursor) == left
    assert len(cursor) < 1_000
    assert write_cursor({}) is None


def packed(text: str) -> str:
    return urlsafe_b64encode(compress(text.encode())).decode()


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "é", "AAAA", packed("[]"), packed("[1]"), packed("{}x"), packed('{"a": [1]}'),
        packed('{"a": {"b": 1}}'), packed('{"a": {"0": "1"}}'), packed('{"a": {"0": true}}'),
        packed("[" * 100_000), packed(" " * 2_000_000),
    ],
)  # fmt: skip
def test_what_is_no_cursor_is_none(text: str) -> None:
    assert read_cursor(text) is None


def test_a_page_behind_another_has_nothing_that_came_later() -> None:
    topics = Topics({("a", 0): {0: 1, 1: 2}}, {("a", 0): 2})
    _, cursor = topics.page(1, None)
    later = Topics({("a", 0): {0: 1, 1: 2, 2: 3}, ("a", 1): {0: 9}}, {("a", 0): 3, ("a", 1): 1})
    items, cursor = later.page(9, cursor)
    assert ([each.offset for each in items], cursor) == ([0], None)
