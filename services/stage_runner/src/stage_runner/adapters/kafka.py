"""Kafka for the runner: commands in, records and facts out. Fulfils `Publisher` and `Topics`."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import NewTopic

from shared import codec, metrics
from shared.access import lacking
from shared.clock import Clock
from shared.errors import InvalidMessage, Retryable, UserError
from shared.events import (
    Command,
    Definition,
    Fact,
    LifecycleEvent,
    Message,
    PipelineRecord,
    Problem,
    Reply,
    pipeline_key,
)
from shared.grants import Operation
from shared.kafka import position_of, produce_and_wait, read_to_end
from shared.kafka_admin import KafkaAdmin, TopicIdentity
from shared.kafka_cluster import Kafka
from shared.membership import Membership
from shared.topics import create_missing
from stage_runner.core.moves import Answer
from stage_runner.core.planning import TopicPlan, TopicState
from stage_runner.core.supervision import PipelineState

logger = logging.getLogger(__name__)

NEW_TOPIC_TIMEOUT_S: Final = 10.0
NEW_TOPIC_POLL_S: Final = 0.02
ACTOR: Final = "stage_runner"
EventKind = Literal["claim", "transition", "heartbeat"]


class KafkaPublisher:
    def __init__(self, producer: Producer, prefix: str, run_id: str, clock: Clock) -> None:
        self._producer = producer
        self._prefix = prefix
        self._run_id = run_id
        self._clock = clock

    def record(self, record: PipelineRecord) -> None:
        self._send("pipelines", record.tenant, record.pipeline_uid, record)

    def definition(self, record: PipelineRecord, body: Definition) -> None:
        fact = Fact(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            generation=record.generation,
            at=self._clock.now_ms(),
            body=body,
        )
        self._send("commits", record.tenant, record.pipeline_uid, fact)

    def claim(self, record: PipelineRecord) -> int:
        event = self._event(PipelineState(record=record), "claim", None)
        return self._send("lifecycle", record.tenant, record.pipeline_uid, event)

    def phase(self, state: PipelineState, phase_from: str | None) -> None:
        kind: EventKind = "heartbeat" if phase_from is None else "transition"
        event = self._event(state, kind, phase_from)
        self._send("lifecycle", state.record.tenant, state.record.pipeline_uid, event)

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        command = answer.command
        reply = Reply(
            tenant=command.tenant,
            pipeline_uid=command.pipeline_uid,
            id=command.id,
            pipeline=command.pipeline,
            action=command.action,
            state=answer.state,
            generation=generation,
            errors=answer.errors,
            warnings=warnings,
            at=self._clock.now_ms(),
        )
        self._send("replies", command.tenant, command.pipeline_uid, reply)

    def _event(
        self, state: PipelineState, kind: EventKind, phase_from: str | None
    ) -> LifecycleEvent:
        record = state.record
        return LifecycleEvent(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            pipeline=record.name,
            generation=record.generation,
            kind=kind,
            phase_from=phase_from,
            phase=state.phase,
            reason=state.reason,
            error=state.error,
            actor=ACTOR,
            run_id=self._run_id,
            attempt=state.attempt,
            next_at=state.next_at,
            blocked_by=state.blocked_by,
            at=self._clock.now_ms(),
        )

    def _send(self, topic: str, tenant: str, pipeline_uid: str, message: Message) -> int:
        """The offset at which the message stands."""
        key = pipeline_key(tenant, pipeline_uid)
        value = codec.encode(message)
        report = produce_and_wait(self._producer, f"{self._prefix}.{topic}", key, value)
        return position_of(report)[1]


class KafkaTopics:
    def __init__(self, admin: KafkaAdmin, *, prefix: str, replication: int) -> None:
        self._admin = admin
        self._prefix = prefix
        self._replication = replication

    def ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        return {name: found.topic_id for name, found in self._admin.identify(topics).items()}

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        wanted = {plan.topic: plan for plan in plans}
        for topic in wanted:
            if topic.startswith(f"{self._prefix}."):
                message = f"topic {topic}: names with {self._prefix}. are Waybill's own"
                raise UserError([Problem(message=message, hint="choose another name")])
        self._refuse_without_rights(wanted)
        present = self._admin.identify(wanted)
        missing = [
            NewTopic(plan.topic, plan.partitions, self._replication)
            for plan in wanted.values()
            if plan.topic not in present
        ]
        if not missing:
            return self._states(present, wanted)
        create_missing(self._admin.client, missing)
        return self._await_new(wanted)

    def _refuse_without_rights(self, wanted: Mapping[str, TopicPlan]) -> None:
        """Better no pipeline than one whose driver fails at its first batch."""
        rights: dict[str, tuple[Operation, ...]] = {
            topic: ("Read", "Write") if plan.written else ("Read",)
            for topic, plan in wanted.items()
        }
        problems = [*lacking(self._admin, "topic", rights)]
        if problems:
            raise UserError(problems)

    def _await_new(self, wanted: Mapping[str, TopicPlan]) -> dict[str, TopicState]:
        """A topic that was just created takes a moment until every broker knows it."""
        deadline = time.monotonic() + NEW_TOPIC_TIMEOUT_S
        while True:
            try:
                present = self._admin.identify(wanted)
                if present.keys() == wanted.keys():
                    return self._states(present, wanted)
            except Retryable:
                pass  # its partitions have no leader yet
            if time.monotonic() > deadline:
                names = ", ".join(sorted(wanted))
                raise Retryable(
                    f"topics {names} are not there {NEW_TOPIC_TIMEOUT_S} s after creation"
                )
            time.sleep(NEW_TOPIC_POLL_S)

    def _states(
        self, present: Mapping[str, TopicIdentity], wanted: Mapping[str, TopicPlan]
    ) -> dict[str, TopicState]:
        return {name: self._state(identity, wanted[name]) for name, identity in present.items()}

    def _state(self, identity: TopicIdentity, plan: TopicPlan) -> TopicState:
        # The latest of a reader of committed records: what is still open comes when it is closed.
        read = self._admin.stable_ends if plan.starting == "latest" else self._admin.starts
        return TopicState(
            topic_id=identity.topic_id,
            starts=read(identity.name, identity.partitions),
            ends=self._admin.ends(identity.name, identity.partitions),
        )


class CommandQueue:
    """Commands of the partitions that this runner owns. An offset is committed only when every
    command up to it has been answered, so a restart carries out again what was left open."""

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        *,
        acquire: Callable[[list[int]], None],
        release: Callable[[list[int]], None],
        membership: Membership,
    ) -> None:
        self._consumer = consumer
        self._membership = membership
        self._topic = topic
        self._open: dict[int, dict[int, str]] = {}
        self._next: dict[int, int] = {}
        self._acquire = acquire
        self._release = release
        self._assigned: list[int] = []
        self._held: tuple[int, int, Command] | None = None
        self._early: KafkaMessage | None = None
        consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def next(self, timeout_s: float) -> tuple[int, int, Command] | None:
        """The next command with partition and offset; the same again until `done` is said."""
        if self._held is None:
            self._held = self._poll(timeout_s)
        return self._held

    def done(self) -> None:
        self._held = None

    def commit(self, unanswered: set[str]) -> None:
        """Commit up to the first command that is still to be answered."""
        if self._held is not None:
            unanswered = unanswered | {self._held[2].id}
        positions = []
        for partition, after in list(self._next.items()):
            opened = self._open.setdefault(partition, {})
            for offset in [o for o, command_id in opened.items() if command_id not in unanswered]:
                del opened[offset]
            positions.append(TopicPartition(self._topic, partition, min([after, *opened])))
            if not opened:
                del self._next[partition]
        if not positions:
            return
        try:
            self._consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            logger.warning("offsets not committed", extra={"reason": str(error)})

    def _poll(self, timeout_s: float) -> tuple[int, int, Command] | None:
        if self._assigned:
            self._acquire(self._assigned)  # outside the callback: it reads topics
            self._assigned = []
        self._membership.check()
        message, self._early = self._early or self._consumer.poll(timeout_s), None
        if message is None:
            return None
        if self._assigned:  # came with its partition, whose pipelines are not known yet
            self._early = message
            return None
        error = message.error()
        if error is not None:
            raise Retryable(f"topic {self._topic}: {error.str()}")
        (partition, offset), value = position_of(message), message.value()
        self._next[partition] = offset + 1
        try:
            command = codec.decode(Command, value or b"")
        except InvalidMessage as invalid:
            metrics.count("waybill_messages_skipped_total", topic=self._topic)
            logger.error("command skipped", extra={"offset": offset, "reason": str(invalid)})
            return None
        self._open.setdefault(partition, {})[offset] = command.id
        return partition, offset, command

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned += [p.partition for p in partitions]
        self._membership.joined()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        lost = [p.partition for p in partitions]
        self._assigned = [partition for partition in self._assigned if partition not in lost]
        self._early = None
        for partition in lost:
            self._open.pop(partition, None)
            self._next.pop(partition, None)
        self._membership.left()
        self._release(lost)


def _record(value: bytes) -> PipelineRecord | None:
    try:
        return codec.decode(PipelineRecord, value)
    except InvalidMessage as error:
        logger.error("pipeline record skipped", extra={"reason": str(error)})
        return None


def read_records(
    kafka: Kafka, topic: str, partitions: Iterable[int]
) -> dict[int, list[PipelineRecord]]:
    """The newest record of each pipeline, by partition."""
    newest: dict[str, tuple[int, PipelineRecord]] = {}
    for message in read_to_end(kafka, topic, partitions):
        value = message.value()
        if value is not None and (record := _record(value)) is not None:
            newest[record.pipeline_uid] = (position_of(message)[0], record)
    grouped: dict[int, list[PipelineRecord]] = {}
    for partition, record in newest.values():
        grouped.setdefault(partition, []).append(record)
    return grouped
