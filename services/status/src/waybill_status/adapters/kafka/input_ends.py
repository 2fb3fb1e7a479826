"""Reads where the topics that pipelines read end. Implements `InputEnds` and `StageEnds` over
Kafka."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from waybill_shared.contract.errors import ContractError, Refusal, Retryable
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity, identities
from waybill_status.app.pipelines.progress import Ends
from waybill_status.core.pipelines.offsets import TopicEnds


class KafkaInputEnds:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    async def ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        return await asyncio.to_thread(self._ends, records)

    async def of_stages(self, record: PipelineRecord) -> dict[str, TopicEnds | ContractError]:
        return await asyncio.to_thread(self._of_stages, record)

    def _ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        answers = self._ask(source for each in records for source in each.root_inputs().values())
        return [_ends_of(record, answers) for record in records]

    def _of_stages(self, record: PipelineRecord) -> dict[str, TopicEnds | ContractError]:
        sources = {source.topic_id: source for each in record.stages for source in each.inputs}
        answers = self._ask(sources.values())
        return {key: answers.of(source, record.name) for key, source in sources.items()}

    def _ask(self, sources: Iterable[InputDefinition]) -> "_Answers":
        topics = {source.topic for source in sources}
        known: dict[str, TopicIdentity | Retryable] = {}
        for name, asked in (self._admin.ask_identities(topics) if topics else {}).items():
            try:
                known |= identities({name: asked})
            except Retryable as error:  # of one topic alone
                known[name] = error
        there = [each for each in known.values() if isinstance(each, TopicIdentity)]
        return _Answers(known, self._admin.ends_of(there) if there else {})


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers of Kafka about topics, by name."""

    known: Mapping[str, TopicIdentity | Retryable]
    ends: Mapping[str, TopicEnds]

    def of(self, source: InputDefinition, pipeline: str) -> TopicEnds | ContractError:
        topic = self.known.get(source.topic)
        if isinstance(topic, Retryable):
            return topic
        if topic is None or topic.topic_id != source.topic_id:
            detail = f"topic {source.topic} is not the one that {pipeline} reads"
            hint = f"`waybill restart {pipeline} --from earliest` goes on with it"
            return Refusal(Slug.TOPIC_RECREATED, detail, hint=hint)
        if source.topic not in self.ends:
            return Retryable(f"topic {source.topic}: the broker did not say how far it goes")
        return self.ends[source.topic]


def _ends_of(record: PipelineRecord, answers: _Answers) -> Ends | ContractError:
    found: dict[str, TopicEnds] = {}
    for source in record.root_inputs().values():
        ends = answers.of(source, record.name)
        if isinstance(ends, ContractError):
            return ends
        found[source.name] = ends
    return found
