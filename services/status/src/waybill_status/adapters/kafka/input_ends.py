"""Reads where the inputs of pipelines end. Implements `InputEnds` over Kafka."""

import asyncio
from collections.abc import Mapping, Sequence

from waybill_shared.contract.errors import ContractError, Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity, identities
from waybill_status.app.pipelines.progress import Ends


class KafkaInputEnds:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    async def ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        return await asyncio.to_thread(self._ends, records)

    def _ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        topics = {source.topic for each in records for source in each.root_inputs().values()}
        known: dict[str, TopicIdentity | Retryable] = {}
        for name, asked in (self._admin.ask_identities(topics) if topics else {}).items():
            try:
                known |= identities({name: asked})
            except Retryable as error:  # of one topic alone
                known[name] = error
        there = [each for each in known.values() if isinstance(each, TopicIdentity)]
        ends = self._admin.ends_of(there) if there else {}
        return [_ends_of(record, known, ends) for record in records]


def _ends_of(
    record: PipelineRecord,
    known: Mapping[str, TopicIdentity | Retryable],
    ends: Mapping[str, Mapping[int, int]],
) -> Ends | ContractError:
    found: dict[str, Mapping[int, int]] = {}
    for source in record.root_inputs().values():
        topic = known.get(source.topic)
        if isinstance(topic, Retryable):
            return topic
        if topic is None or topic.topic_id != source.topic_id:
            detail = f"topic {source.topic} is not the one that {record.name} reads"
            hint = f"`waybill restart {record.name} --from earliest` goes on with it"
            return Refusal(Slug.TOPIC_RECREATED, detail, hint=hint)
        if source.topic not in ends:
            return Retryable(f"topic {source.topic}: the broker did not say how far it goes")
        found[source.name] = ends[source.topic]
    return found
