"""Reads reports of batches again from the topic of commits. Implements `PastCommits`."""

from collections.abc import Collection
from contextlib import closing
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Commit, Fact, pipeline_key
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.partitioner import partition_of
from waybill_status.adapters.kafka.past_events import READ_S, PastMessages
from waybill_status.app.pipelines.batches import CommitsTopic, ReportsReading
from waybill_status.app.pipelines.history import Part
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.batches import ReportedBatch, report_of

GONE: Final = "topic {topic} does not exist, or was created again a moment ago: try again"


class KafkaPastCommits:
    """The topic of commits. Its id is compared before and after each page is read."""

    def __init__(self, admin: KafkaAdmin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._messages = PastMessages(admin.cluster, topic, Fact)

    async def topic(self, pipeline: PipelineKey) -> CommitsTopic:
        return await self._messages.run(lambda: self._find_topic(pipeline))

    async def read(
        self,
        pipeline: PipelineKey,
        stages: Collection[str],
        topic: CommitsTopic,
        part: Part,
        *,
        most: int,
    ) -> ReportsReading:
        return await self._messages.run(lambda: self._read(pipeline, stages, topic, part, most))

    def _find_topic(self, pipeline: PipelineKey) -> CommitsTopic:
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(GONE.format(topic=self._topic))
        partition = partition_of(pipeline_key(*pipeline), len(identity.partitions))
        return CommitsTopic(
            topic_id=identity.topic_id,
            partition=partition,
            start=self._admin.starts(self._topic, [partition])[partition],
            end=self._admin.stable_ends(self._topic, [partition])[partition],
        )

    def _read(
        self,
        pipeline: PipelineKey,
        stages: Collection[str],
        topic: CommitsTopic,
        part: Part,
        most: int,
    ) -> ReportsReading:
        found: list[ReportedBatch] = []
        end = part[1]
        reading = self._messages.read(
            {topic.partition: part}, key=pipeline_key(*pipeline), silence_s=READ_S, within_s=READ_S
        )
        with closing(reading) as facts:
            for fact, (_, offset) in facts:
                if not isinstance(fact.body, Commit) or fact.body.stage not in stages:
                    continue
                found.append(report_of(topic.place(offset), fact.generation, fact.body))
                if len(found) >= most:
                    end = offset + 1
                    break
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None or identity.topic_id != topic.topic_id:
            raise Retryable(GONE.format(topic=self._topic))
        return ReportsReading(reports=tuple(found), end=end)
