"""Knows of each partition an offset below which no record can be that is written from now on.

Its end is one, if it was asked for before the write. Afterwards nobody can tell from the topic
where a record stands of which Kafka did not say it, not even whether the topic still has it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from waybill_ingress.app.ports import Mint, Topics
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import TopicIdentity

FLOOR_AGE_MS_MAX = 60_000  # an older one is true as well, but covers more of others' records


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    topic_id: str
    floors: Mapping[int, int]
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
            known = _Known(topic_id=topic.topic_id, floors={}, read_at=-FLOOR_AGE_MS_MAX)
        if 0 <= self._mint.now_ms() - known.read_at < FLOOR_AGE_MS_MAX:
            return known.floors
        with suppress(Retryable):
            ends = await self._topics.ends(topic.name, topic.partitions)
            known = replace(known, floors=ends, read_at=self._mint.now_ms())
            self._known[topic.name] = known
        return known.floors
