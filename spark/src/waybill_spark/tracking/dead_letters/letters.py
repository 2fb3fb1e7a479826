"""A dead record as it is written to a dead-letter topic, and as the fact about it."""

from typing import Final

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letter_facts import DeadLetter
from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.events import Fence
from waybill_shared.contract.replays import ReplayPosition
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord

STEPS: Final = {
    DeadReason.MALFORMED: "VALUE_CONVERTER",
    DeadReason.VIOLATED: "TRANSFORMATION",
    DeadReason.FAILED: "TRANSFORMATION",
    DeadReason.REFUSED: "TASK_PUT",
    DeadReason.PUT_BY_OPERATOR: "KAFKA_CONSUME",
}
"""What Kafka Connect would call the step that failed."""


def headers_of(
    dead: DeadLetterRecord, topic_id: str, fence: Fence, pipeline: str, *, stage_key: str
) -> Headers:
    """Return the record's own headers, then those that say why it is dead.

    `topic_id`: of its own topic; `fence`: of the journal entry that it belongs to.
    """
    record, cause = dead.record, dead.cause
    values = {
        named.TOPIC: record.topic,
        named.PARTITION: str(record.partition),
        named.OFFSET: str(record.offset),
        named.CONNECTOR: pipeline,
        named.TASK: "0",
        named.STEP: STEPS[DeadReason(cause.reason)],
        named.CLASS: f"{named.OWN}.{fence.stage}",
        named.ERROR: cause.error or cause.reason,
        named.MESSAGE: cause.message,
        named.PIPELINE: pipeline,
        named.UID: fence.pipeline_uid,
        named.TOPIC_ID: topic_id,
        named.STAGE: fence.stage,
        named.STAGE_KEY: stage_key,
        named.SINK: cause.sink,
        named.REASON: cause.reason,
        named.RULE: cause.rule,
        named.BATCH: f"{fence.batch.lineage}:{fence.batch.batch_id}",
        named.AT: str(fence.batch.started_at),
        named.GENERATION: str(fence.generation),
    }
    return named.with_facts(record.headers, values)


def letter_of(dead: DeadLetterRecord, topic_id: str, place: tuple[str, int, int]) -> DeadLetter:
    """Return the fact about a dead letter. `place`: its topic, partition and offset."""
    record, cause = dead.record, dead.cause
    topic, partition, offset = place
    return DeadLetter(
        topic=record.topic,
        topic_id=topic_id,
        partition=record.partition,
        offset=record.offset,
        sink=cause.sink,
        reason=cause.reason,
        rule=cause.rule,
        message=cause.message,
        dead_topic=topic,
        dead_partition=partition,
        dead_offset=offset,
        replayed=_replay_of(dead),
    )


def _replay_of(dead: DeadLetterRecord) -> ReplayPosition | None:
    at = dead.record.replayed
    if at is None:
        return None
    return ReplayPosition(topic_id=at.topic_id, partition=at.partition, offset=at.offset)
