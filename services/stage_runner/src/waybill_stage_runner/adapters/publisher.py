"""Writes messages about the pipelines of one commands partition to Kafka. Fulfils `Publisher`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from waybill_shared.contract import codec
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.events import (
    Definition,
    Fact,
    PipelineRecord,
    Reply,
    command_key,
    pipeline_key,
)
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent, SqlGuard
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.kafka.transactions import Outgoing
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.states import EventKind, MessageOrigin, PipelineState


class TransactionalSender(Protocol):
    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        """Send the messages in one transaction. Return their offsets."""


class KafkaPublisher:
    def __init__(
        self,
        producer: TransactionalSender,
        topics: OwnTopics,
        prefix: str,
        clock: Clocks,
        *,
        sql_guard: SqlGuard = "strict",
    ) -> None:
        self._producer = producer
        self._topics = topics
        self._prefix = prefix
        self._clock = clock
        self._sql_guard = sql_guard

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        messages = [self._record(record)]
        if definition is not None:
            fact = Fact(
                tenant=record.tenant,
                pipeline_uid=record.pipeline_uid,
                generation=record.generation,
                at=self._clock.now_ms(),
                body=definition,
            )
            messages.append(self._to("commits", fact))
        self._producer.send(messages)

    def claim(self, record: PipelineRecord) -> Lease:
        lifecycle_id = self._topics.id_of(f"{self._prefix}.lifecycle")
        event = self._event(PipelineState(record=record), "claim", None)
        epoch, _ = self._producer.send([self._to("lifecycle", event), self._record(record)])
        return Lease(epoch=epoch, lifecycle_id=lifecycle_id)

    def phase(self, state: PipelineState, phase_from: str, *, recorded: bool) -> None:
        event = self._event(state, "transition", phase_from)
        written = [self._record(state.record)] if recorded else []
        self._producer.send([self._to("lifecycle", event), *written])

    def skipped(self, state: PipelineState, reason: str) -> None:
        event = self._event(state, "schedule", None, skipped=reason)
        self._producer.send([self._to("lifecycle", event), self._record(state.record)])

    def report_blocked(self, state: PipelineState) -> None:
        event = self._event(state, "heartbeat", None)
        self._producer.send([self._to("lifecycle", event)])

    def maintenance(self, state: PipelineState, maintenance: TableMaintenance) -> None:
        event = self._event(state, "maintenance", None, maintenance)
        self._producer.send([self._to("lifecycle", event)])

    def beat(self, states: Sequence[PipelineState]) -> None:
        origin = self._origin()
        beats = (
            Beat(
                tenant=state.record.tenant,
                pipeline_uid=state.record.pipeline_uid,
                at=origin.at,
                blocked_by=state.blocked_by,
                waits=state.waits,
                ignored=state.ignored,
                conditions=state.conditions(origin),
            )
            for state in states
        )
        self._producer.send([self._to("beats", beat) for beat in beats])

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        command = answer.command
        reply = Reply(
            tenant=command.tenant,
            pipeline_uid=command.pipeline_uid,
            id=command.id,
            pipeline=command.pipeline,
            action=command.action,
            actor=command.actor,
            state=answer.state,
            generation=generation,
            errors=answer.errors,
            warnings=warnings,
            at=self._clock.now_ms(),
            problem=answer.problem,
            result=answer.result,
        )
        self._producer.send([self._with_key("replies", command_key(command), reply)])

    def _record(self, record: PipelineRecord) -> Outgoing:
        commands_id = self._topics.id_of(f"{self._prefix}.commands")
        return self._to("pipelines", replace(record, commands_id=commands_id))

    def _event(
        self,
        state: PipelineState,
        kind: EventKind,
        phase_from: str | None,
        maintenance: TableMaintenance | None = None,
        skipped: str | None = None,
    ) -> LifecycleEvent:
        return state.event(kind, phase_from, self._origin(), maintenance, skipped)

    def _origin(self) -> MessageOrigin:
        return MessageOrigin(
            at=self._clock.now_ms(),
            now=self._clock.monotonic_ms(),
            sql_guard=self._sql_guard,
        )

    def _to(self, topic: str, message: PipelineRecord | Fact | LifecycleEvent | Beat) -> Outgoing:
        return self._with_key(topic, pipeline_key(message.tenant, message.pipeline_uid), message)

    def _with_key(
        self, topic: str, key: str, message: PipelineRecord | Fact | LifecycleEvent | Beat | Reply
    ) -> Outgoing:
        return Outgoing(topic=f"{self._prefix}.{topic}", key=key, value=codec.encode(message))
