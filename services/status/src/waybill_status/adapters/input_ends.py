"""Where the inputs of a pipeline end. Fulfils `InputEnds` over Kafka."""

import asyncio

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.kafka.admin import KafkaAdmin


class KafkaInputEnds:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    async def ends(self, record: PipelineRecord) -> dict[str, dict[int, int]]:
        return await asyncio.to_thread(self._ends, record)

    def _ends(self, record: PipelineRecord) -> dict[str, dict[int, int]]:
        sources = record.root_inputs().values()
        known = self._admin.identify({source.topic for source in sources})
        found: dict[str, dict[int, int]] = {}
        for source in sources:
            topic = known.get(source.topic)
            if topic is None or topic.topic_id != source.topic_id:
                detail = f"topic {source.topic} is not the one that {record.name} reads"
                hint = f"`waybill restart {record.name} --from earliest` goes on with it"
                raise Refusal(Slug.TOPIC_RECREATED, detail, hint=hint)
            found[source.name] = self._admin.ends(source.topic, topic.partitions)
        return found
