"""Collects the offsets that Kafka acknowledged for one request.

Neighbouring offsets are joined as they arrive: a million records of one partition are one span.
Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from waybill_shared.contract.vectors import Span, merge_spans


class DeliveredRanges:
    def __init__(self) -> None:
        self.count = 0
        self._records: Counter[int] = Counter()
        self._lowest: dict[int, int] = {}
        self._runs: dict[int, list[tuple[int, int]]] = {}
        self._unplaced: set[int] = set()

    def add(self, delivered: Iterable[tuple[int, int]]) -> None:
        """Add delivered records as (partition, offset), in any order. Offset -1 means that it is
        not known.
        """
        placed: dict[int, list[int]] = {}
        for partition, offset in delivered:
            self.count += 1
            self._records[partition] += 1
            if offset < 0:
                self._unplaced.add(partition)
            else:
                placed.setdefault(partition, []).append(offset)
        for partition, offsets in placed.items():
            self._lowest[partition] = min(*offsets, self._lowest.get(partition, offsets[0]))
            self._extend(self._runs.setdefault(partition, []), sorted(offsets))

    @staticmethod
    def _extend(runs: list[tuple[int, int]], offsets: list[int]) -> None:
        for offset in offsets:
            if runs and runs[-1][1] == offset:
                runs[-1] = (runs[-1][0], offset + 1)
            else:
                runs.append((offset, offset + 1))

    @property
    def unplaced(self) -> frozenset[int]:
        """Partitions in which an acknowledged record has no offset."""
        return frozenset(self._unplaced)

    def shrunk_partitions(self, floors: Mapping[int, int], ends: Mapping[int, int]) -> set[int]:
        """Return the partitions that did not grow by what was written, if brokers are right.

        A broker that lags reports the id of the earlier topic, or an end from before another broker
        was the leader. A token with such offsets might cover what was read long ago.
        """
        before = {p for p, lowest in self._lowest.items() if lowest < floors.get(p, 0)}
        return before | {p for p, end in ends.items() if end < floors.get(p, 0) + self._records[p]}

    def spans(
        self, topic_id: str, floors: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Span, ...]:
        """Return the spans of the token.

        They are exact where offsets were reported. Else, if the end of the partition is known, they
        reach from the floor to the end. The floor was the end before the write.
        """
        exact = (
            Span(topic_id=topic_id, partition=partition, start=start, end=end)
            for partition, runs in self._runs.items()
            if partition not in ends
            for start, end in runs
        )
        upper = tuple(
            Span(topic_id=topic_id, partition=partition, start=floors.get(partition, 0), end=end)
            for partition, end in ends.items()
        )
        return merge_spans(exact) + upper
