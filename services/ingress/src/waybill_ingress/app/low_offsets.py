"""Keeps an offset for each partition below which no new record can be.

The end of a partition is such an offset, if it was read before the write. If Kafka did not
report the offset of a record, the topic cannot say where it is, nor whether it still has it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from waybill_ingress.app.ports import SealingClock, Topics
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin_answers import TopicIdentity

FLOOR_AGE_MS_MAX = 60_000  # an older one is correct as well, but covers more records of others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    topic_id: str
    floors: Mapping[int, int]
    read_at: int


class LowOffsets:
    def __init__(self, topics: Topics, mint: SealingClock) -> None:
        self._topics = topics
        self._mint = mint
        self._known: dict[str, _Known] = {}

    async def of(self, topic: TopicIdentity) -> Mapping[int, int]:
        """Return the offsets by partition. For a partition that is missing only 0 is known."""
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
