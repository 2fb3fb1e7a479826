"""Knows of each topic an offset below which no record can be that is written from now on.

The first offset a partition holds is one. Asked after the record was written it would be none: what
is acknowledged may be gone a moment later, as everything old.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from ingress.app.ports import Mint, Topics
from shared.errors import Retryable
from shared.kafka_admin import TopicIdentity

FLOOR_AGE_MS_MAX = 60_000  # an older one is true as well, but covers what others lost since


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    topic_id: str
    starts: Mapping[int, int]
    read_at: int


class Floors:
    def __init__(self, topics: Topics, mint: Mint) -> None:
        self._topics = topics
        self._mint = mint
        self._known: dict[str, _Known] = {}

    async def of(self, topic: TopicIdentity) -> Mapping[int, int]:
        """By partition; of one that is not named nothing better is known than 0."""
        known = self._known.get(topic.name)
        if known is None or known.topic_id != topic.topic_id:
            known = _Known(topic_id=topic.topic_id, starts={}, read_at=-FLOOR_AGE_MS_MAX)
        if 0 <= self._mint.now_ms() - known.read_at < FLOOR_AGE_MS_MAX:
            return known.starts
        with suppress(Retryable):
            starts = await self._topics.starts(topic.name, topic.partitions)
            known = replace(known, starts=starts, read_at=self._mint.now_ms())
            self._known[topic.name] = known
        return known.starts
