"""Makes the records of restarts, of rewinds, and of records that a person puts aside.

Where a stage begins is a matter of topics: they may have been created again, and times become
offsets. So each asks Kafka, before anything is written. Raises Retryable while Kafka is away.
"""

from dataclasses import replace

from waybill_shared.contract import commands
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_stage_runner.app.ports import Topics
from waybill_stage_runner.core.pipelines.compatibility import (
    explain_recreated,
    find_recreated,
    refuse_recreated,
)
from waybill_stage_runner.core.pipelines.planning import define, topics_of
from waybill_stage_runner.core.pipelines.putting import limits_in, put_record, request_of
from waybill_stage_runner.core.pipelines.records import restart_record
from waybill_stage_runner.core.pipelines.rewinding import (
    forget_rewinds,
    plan_rewinds,
    refuse_unconfirmed,
    rewound_record,
)


class Restarts:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def restart(
        self, command: Command, body: commands.Restart, before: PipelineRecord, now: int
    ) -> PipelineRecord:
        """Return the record after a restart, checked before and after topics are created.

        Where it says from where to begin, that is about topics that were created again, if there
        are any. Else it is a rewind.
        """
        if body.dead_letter is not None:
            return self._put_dead_letter(command, before, now)
        manifest, start_from = before.manifest.model, body.start_from
        rewinds = commands.begins_elsewhere(body)
        if rewinds and not (recreated := self._find_recreated(before)):
            rewound = self._rewind(command.actor, body, before, now)
            return restart_record(rewound, rewound.stages, now)
        if start_from == "fresh" or (rewinds and start_from is None):
            raise UserError([explain_recreated(before, recreated)])
        plans = topics_of(manifest, start_from)
        if start_from is None:
            refuse_recreated(before, self._topics.ids(plans))
        topics = self._topics.prepare(plans)
        if start_from is None:
            refuse_recreated(before, {name: topic.topic_id for name, topic in topics.items()})
        return restart_record(before, define(manifest, topics, before), now)

    def set_offsets(
        self, actor: str, body: commands.SetOffsets, before: PipelineRecord, now: int
    ) -> PipelineRecord:
        """Return the record with where the next run begins; without it, that is where sinks are."""
        if not commands.begins_elsewhere(body):
            return replace(forget_rewinds(before), updated_at=now)
        if recreated := self._find_recreated(before):
            raise UserError([explain_recreated(before, recreated)])
        return replace(self._rewind(actor, body, before, now), updated_at=now)

    def _rewind(
        self, actor: str, body: commands.Rewinding, before: PipelineRecord, now: int
    ) -> PipelineRecord:
        """Return the record with where stages are to begin. Times become offsets here."""
        topics = self._topics.prepare(topics_of(before.manifest.model, "earliest"))
        refuse_recreated(before, {name: topic.topic_id for name, topic in topics.items()})
        times = {} if body.at is None else self._topics.starts_at(topics, body.at)
        again = plan_rewinds(before, body, topics, times, now)
        refuse_unconfirmed(before, body, again)
        forward = body.start_from == "latest"
        return rewound_record(before, again, actor, now, forward=forward)

    def _put_dead_letter(
        self, command: Command, before: PipelineRecord, now: int
    ) -> PipelineRecord:
        """Return the record after a request to put a record into its dead-letter topic."""
        if recreated := self._find_recreated(before):
            raise UserError([explain_recreated(before, recreated)])
        plans = topics_of(before.manifest.model, "earliest")
        topics = self._topics.prepare(plans)
        committed = self._topics.prepare(replace(plan, starting="latest") for plan in plans)
        refuse_recreated(before, {name: topic.topic_id for name, topic in topics.items()})
        limits, replays = limits_in(topics, committed), self._topics.replays()
        return put_record(before, request_of(before, command, limits, replays), now)

    def _find_recreated(self, before: PipelineRecord) -> list[str]:
        ids = self._topics.ids(topics_of(before.manifest.model))
        return find_recreated(before, ids)
