"""What Kafka has acknowledged of one request, folded as it comes: a million records of one
partition are one span. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from waybill_shared.contract.vectors import Span, merge_spans


class Acknowledged:
    def __init__(self) -> None:
        self.count = 0
        self._records: Counter[int] = Counter()
        self._lowest: dict[int, int] = {}
        self._runs: dict[int, list[tuple[int, int]]] = {}
        self._unplaced: set[int] = set()

    def add(self, delivered: Iterable[tuple[int, int]]) -> None:
        """(partition, offset), -1 where it is not known where, in any order."""
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

    def gone_back(self, floors: Mapping[int, int], ends: Mapping[int, int]) -> set[int]:
        """Partitions that, by what brokers say, did not grow by what was written.

        One that lags tells the id of the topic that was there before, or an end from before another
        broker had the lead. What a token would cover then may have been read long ago.
        """
        before = {p for p, lowest in self._lowest.items() if lowest < floors.get(p, 0)}
        return before | {p for p, end in ends.items() if end < floors.get(p, 0) + self._records[p]}

    def spans(
        self, topic_id: str, floors: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Span, ...]:
        """Exact where offsets were reported; else, where there is an end, all from the floor to it.

        The floor was the end before the write.
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
