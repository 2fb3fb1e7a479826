"""Proposes the columns of an input.

Promise: it only reads, and only topics that an input may have.
"""

import asyncio

from waybill_ingress.app.ports import Samples, Topics
from waybill_ingress.core.proposals import Proposed, check_topic, propose
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug


class Proposals:
    def __init__(self, topics: Topics, samples: Samples, prefix: str) -> None:
        self._topics = topics
        self._samples = samples
        self._prefix = prefix

    async def propose(self, topic: str) -> Proposed:
        check_topic(topic, self._prefix)
        identity = await self._topics.describe(topic)
        if identity is None:
            hint = "the case of letters counts; and it must be in the Kafka that Waybill uses"
            raise Refusal(Slug.TOPIC_NOT_FOUND, f"there is no topic {topic}", hint=hint)
        values = await self._samples.newest(topic, identity.partitions)
        return await asyncio.to_thread(propose, topic, values)  # records may be large
