"""What a runner says, as transactions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from builders import NOW, make_definition, make_record
from message_builders import make_command
from unit.stage_runner.fakes import SameTopics
from waybill_shared.contract import codec
from waybill_shared.contract.commands import Logs
from waybill_shared.contract.events import Fact, PipelineRecord, Reply, command_key, pipeline_key
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Obstacle, OperationState
from waybill_shared.kafka.transactions import Outgoing
from waybill_stage_runner.adapters.publisher import KafkaPublisher
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.states import PipelineState

RECORD = make_record()


M = TypeVar("M", PipelineRecord, Fact, LifecycleEvent, Reply)


class Producer:
    """Remembers transactions."""

    def __init__(self) -> None:
        self.sent: list[list[Outgoing]] = []

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        self.sent.append(list(messages))
        return tuple(range(7, 7 + len(messages)))


class SetBack:
    """An hour after the start somebody has set the wall clock back by two."""

    def now_ms(self) -> int:
        return NOW - 3_600_000

    def monotonic_ms(self) -> int:
        return 3_600_000


def decoded(kind: type[M], sent: Outgoing) -> M:
    assert sent.value is not None
    return codec.decode(kind, sent.value)


def publisher(producer: Producer) -> KafkaPublisher:
    return KafkaPublisher(producer, SameTopics(), "waybill", SetBack())


def test_record_and_definition_are_one_transaction() -> None:
    producer = Producer()
    publisher(producer).change(RECORD, make_definition())
    ((record, fact),) = producer.sent
    assert (record.topic, fact.topic) == ("waybill.pipelines", "waybill.commits")
    assert record.key == fact.key
    said = decoded(PipelineRecord, record)
    assert said == replace(RECORD, commands_id="id of waybill.commands")
    assert decoded(Fact, fact).body == make_definition()


def test_heartbeats_of_a_partition_are_one_transaction() -> None:
    producer = Producer()
    publisher(producer).beat([PipelineState(record=make_record(uid=uid)) for uid in ("a", "b")])
    ((first, second),) = producer.sent
    assert [first.key, second.key] == ["default/a", "default/b"]
    assert first.topic == "waybill.beats", "which does not keep them"


def test_what_a_driver_waits_for_stays_in_the_history() -> None:
    producer = Producer()
    publisher(producer).report_blocked(
        PipelineState(record=RECORD, blocked_by=Obstacle.NO_SPARK_EXECUTOR)
    )
    ((event,),) = producer.sent
    assert event.topic == "waybill.lifecycle"
    assert decoded(LifecycleEvent, event).blocked_by == "no_spark_executor"


def test_a_change_of_phase_names_who_wanted_it_and_a_life_sign_does_not() -> None:
    producer = Producer()
    state = PipelineState(record=RECORD, actor="ada")
    publisher(producer).phase(state, "Running", recorded=False)
    publisher(producer).report_blocked(state)
    said = [decoded(LifecycleEvent, event).actor for (event,) in producer.sent]
    assert said == ["ada", "stage_runner"]


def test_the_epoch_is_where_the_claim_stands() -> None:
    lease = publisher(Producer()).claim(RECORD)
    assert lease == Lease(epoch=7, lifecycle_id="id of waybill.lifecycle")


def test_people_read_the_next_attempt_on_the_clock_that_they_have() -> None:
    producer = Producer()
    state = PipelineState(record=RECORD, next_at=3_600_500)
    publisher(producer).phase(state, "Running", recorded=False)
    ((event,),) = producer.sent
    said = decoded(LifecycleEvent, event)
    assert (said.at, said.next_at) == (NOW - 3_600_000, NOW - 3_600_000 + 500)


def test_an_answer_names_command_and_generation() -> None:
    producer = Producer()
    publisher(producer).answer(
        Answer(command=make_command(id="c9"), state=OperationState.DONE), 4, ("slow",)
    )
    ((answer,),) = producer.sent
    reply = decoded(Reply, answer)
    assert (reply.id, reply.state, reply.generation) == ("c9", "done", 4)
    assert (reply.warnings, reply.actor) == (("slow",), "ada")


def test_an_answer_stands_where_its_command_stands() -> None:
    """Whoever takes the partition over learns there what was answered."""
    producer = Producer()
    asked = replace(make_command(), body=Logs(about="theirs", lines=1))
    for command in (make_command(), asked):
        publisher(producer).answer(Answer(command=command, state=OperationState.DONE), 4, ())
    keys = [answer.key for (answer,) in producer.sent]
    assert keys == [
        pipeline_key(asked.tenant, asked.pipeline_uid),
        pipeline_key(asked.tenant, "theirs"),
    ]
    assert keys[1] == command_key(asked)


def test_an_answer_says_why_a_command_has_failed() -> None:
    producer = Producer()
    refused = Answer(
        command=make_command(), state=OperationState.FAILED, problem=Slug.PLAN_INCOMPATIBLE
    )
    publisher(producer).answer(refused, None, ())
    ((answer,),) = producer.sent
    reply = decoded(Reply, answer)
    assert (reply.problem, reply.result) == ("plan_incompatible", None)


def test_what_a_time_of_the_schedule_does_is_one_transaction_with_the_record() -> None:
    producer = Producer()
    state = PipelineState(record=replace(RECORD, run=4, next_run_at=NOW), phase=Phase.RUNNING)
    publisher(producer).phase(state, "Finished", recorded=True)
    publisher(producer).skipped(state, "skipped: run 4 is Running")
    for sent, kind in zip(producer.sent, ("transition", "schedule"), strict=True):
        event, record = sent
        assert (event.topic, record.topic) == ("waybill.lifecycle", "waybill.pipelines")
        assert decoded(LifecycleEvent, event).kind == kind
        assert decoded(PipelineRecord, record).next_run_at == NOW
    skipped = decoded(LifecycleEvent, producer.sent[1][0])
    assert (skipped.actor, skipped.reason) == ("schedule", "skipped: run 4 is Running")
    assert skipped.next_run_at == NOW
