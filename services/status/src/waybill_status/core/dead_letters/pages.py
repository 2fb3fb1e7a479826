"""Decides what to read next when topics are read backwards, newest records of all partitions first.
Pure.

In one partition the order is that of offsets, between partitions that of the records' times.
"""

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from typing import Final

from waybill_status.core.dead_letters.dead_letter_view import DeadLetterSummary

Partition = tuple[str, int]
"""Topic name and partition."""
Bounds = Mapping[Partition, tuple[int, int]]
"""The offsets to read of each partition: from the first to before the second."""

OFFSETS_MAX: Final = 20_000  # that one page examines
ROUND_MAX: Final = 5_000  # that are read together
STEP_MIN: Final = 10
CURSOR_BYTES_MAX: Final = 1_000_000  # as JSON: about 30,000 partitions


class Backwards:
    """One page. `round` says what to read next, until it is empty: nothing is left, or the page is
    full."""

    def __init__(self, bounds: Bounds, limit: int) -> None:
        self._left = {place: ends for place, ends in bounds.items() if ends[0] < ends[1]}
        self._heads: dict[Partition, list[DeadLetterSummary]] = {}
        self._limit = limit
        self._looked_at = 0
        self._growth = 1
        self.items: list[DeadLetterSummary] = []

    def round(self) -> dict[Partition, tuple[int, int]]:
        """Return the next offsets of those partitions that have no record ready."""
        if len(self.items) >= self._limit or self._looked_at >= OFFSETS_MAX:
            return {}
        dry = {place: ends for place, ends in self._left.items() if not self._heads.get(place)}
        room = min(ROUND_MAX, OFFSETS_MAX - self._looked_at)
        step = max(STEP_MIN, min(self._growth * self._limit, room // max(1, len(dry))))
        self._growth *= 4
        return {place: (max(start, end - step), end) for place, (start, end) in dry.items()}

    def take(self, asked: Bounds, found: Mapping[Partition, list[DeadLetterSummary]]) -> None:
        """Accept the records of the offsets that `round` asked for, in their order."""
        for place, (start, end) in asked.items():
            self._looked_at += end - start
            self._heads[place] = found.get(place, [])
            first, _ = self._left.pop(place)
            if first < start:
                self._left[place] = (first, start)
        while len(self.items) < self._limit and (newest := self._newest()) is not None:
            self.items.append(self._heads[newest].pop())

    def left(self) -> dict[Partition, int]:
        """Return the end of what is left of each partition; finished partitions are not in it."""
        ends = {place: end for place, (_, end) in self._left.items()}
        heads = {place: each[-1].offset + 1 for place, each in self._heads.items() if each}
        return ends | heads

    def _newest(self) -> Partition | None:
        """Return the partition with the newest record; None while a partition without a ready
        record may still have a newer one."""
        if any(not self._heads.get(place) for place in self._left):
            return None
        held = [(letters[-1].at, place) for place, letters in self._heads.items() if letters]
        return max(held)[1] if held else None


def write_cursor(left: Mapping[Partition, int]) -> str | None:
    if not left:
        return None
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), end in sorted(left.items()):
        topics.setdefault(topic, {})[str(partition)] = end
    packed = zlib.compress(json.dumps(topics, separators=(",", ":")).encode(), 9)
    return urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(text: str) -> dict[Partition, int] | None:
    """Return the positions of a cursor; None if the text is no cursor."""
    try:
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        content = json.loads(zlib.decompressobj().decompress(packed, CURSOR_BYTES_MAX))
        return dict(_positions(content))
    except (NotBase64, zlib.error, ValueError, TypeError, AttributeError, RecursionError):
        return None


def _positions(content: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[Partition, int]]:
    for topic, partitions in content.items():
        for partition, end in partitions.items():
            if type(end) is not int:
                raise TypeError(end)
            yield (topic, int(partition)), end


def cut(bounds: Bounds, left: Mapping[Partition, int]) -> Bounds:
    """Return those parts of the bounds that an earlier page has left."""
    return {
        place: (start, min(end, left[place]))
        for place, (start, end) in bounds.items()
        if place in left
    }
