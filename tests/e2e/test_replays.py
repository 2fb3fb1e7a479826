"""Dead letters that are replayed, on the whole stack: from an outcome to the row."""

import json
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from e2e.waiting import eventually
from waybill import Client, DeadLetter, Outcome, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait, read_to_end
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
    expectations: [{{name: enough, expect: "amount >= {least}"}}]
stages:
  - name: first
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: inner, kafka: {{topic: {name}.inner, partitions: 1}}}}]
  - name: second
    inputs: [inner]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: shared, sql: "SELECT *, {share} AS share FROM inner"}}]
    sinks: [{{name: out, kafka: {{topic: {name}.out, partitions: 1}}}}]
"""


class Mended:
    """A pipeline whose rule asks for too much at first."""

    manifest = MANIFEST

    def __init__(self, client: Client, stack: StackState, kafka: KafkaAdmin) -> None:
        self.client = client
        self.name = f"replay-{uuid.uuid4().hex[:8]}"
        self.topic = f"{self.name}.in"
        self.table = f"raw.{self.name.replace('-', '_')}"
        self._kafka = kafka
        self.stack = stack
        self._producer = make_producer(stack.kafka)
        create_missing(kafka, [NewTopic(self.topic, 1, 1)])
        self.ask_for(10)

    def ask_for(self, least: int, *, share: str = "100 div amount") -> None:
        text = self.manifest.format(name=self.name, table=self.table, least=least, share=share)
        done = self.client.operation(self.client.apply(text).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.client.wait_pipeline(self.name, timeout_s=WAIT_S)

    def send(self, order: int, amount: int) -> str:
        """The token of one record."""
        value = json.dumps({"order_id": order, "amount": amount}).encode()
        message = produce_and_wait(self._producer, self.topic, "key", value)
        partition, offset = position_of(message)
        topic_id = self._kafka.identify([self.topic])[self.topic].topic_id
        place = Position(topic=self.topic, topic_id=topic_id, partition=partition, offset=offset)
        return self.client.token_for(self.name, positions=[place]).token

    def outcome(self, token: str) -> Outcome:
        return self.client.wait(token, timeout_s=WAIT_S)

    def orders(self) -> list[int]:
        """Of the rows that a reader of the last topic finds."""
        messages = read_to_end(self.stack.kafka, f"{self.name}.out", [0])
        return [json.loads(message.value() or b"")["order_id"] for message in messages]

    def headers(self) -> list[object]:
        """Of the records in the input."""
        return [message.headers() for message in read_to_end(self.stack.kafka, self.topic, [0])]


@pytest.fixture(scope="module")
def pipeline(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Mended]:
    made = Mended(client, stack, kafka)
    yield made
    client.delete(made.name)


def only_dead(outcome: Outcome) -> DeadLetter:
    assert outcome.kind == "dead_lettered"
    (dead,) = outcome.dead
    return dead


def test_once_the_cause_is_mended_a_replay_completes_and_the_old_token_shows_it(
    pipeline: Mended,
) -> None:
    token = pipeline.send(1, 5)
    before = pipeline.outcome(token)
    letter = only_dead(before).id
    assert letter is not None
    still = pipeline.client.replay(pipeline.name, [letter])
    second = only_dead(pipeline.outcome(still.token)).id
    assert second is not None
    assert second != letter
    pipeline.ask_for(0)
    same = pipeline.client.replay(pipeline.name, [letter])
    assert (same.token, same.replayed, same.already) == (still.token, 0, 1)
    done = pipeline.client.replay(pipeline.name, [second])
    assert done.raw["sinks"] == ["first/inner"]
    assert pipeline.outcome(done.token).kind == "complete"
    assert pipeline.orders() == [1]
    assert pipeline.headers() == [None], "nothing is written to the input"
    for old in (token, still.token):
        eventually(lambda t=old: only_dead(pipeline.outcome(t)).replayed_as, within_s=WAIT_S)  # type: ignore[misc]
    assert pipeline.outcome(token).kind == before.kind
    again = pipeline.client.replay(pipeline.name, [letter], again=True)
    assert pipeline.outcome(again.token).kind == "complete"
    assert pipeline.orders() == [1, 1]


def test_record_that_died_between_stages_comes_back_there(pipeline: Mended) -> None:
    pipeline.ask_for(0)
    outcome = pipeline.outcome(pipeline.send(7, 0))
    dead = only_dead(outcome)
    assert not dead.exact
    inner = f"{pipeline.name}.inner"
    letter = f"{inner}.dlq:0:0:{last_offset(pipeline)}"
    done = pipeline.client.replay(pipeline.name, [letter])
    assert done.raw["sinks"] == ["second/out"]
    again = only_dead(pipeline.outcome(done.token))
    assert (again.exact, again.stage, again.topic) == (True, "second", inner)
    assert 7 not in pipeline.orders()
    pipeline.ask_for(0, share="100 div nullif(amount, 0)")
    assert again.id is not None
    mended = pipeline.client.replay(pipeline.name, [again.id])
    assert pipeline.outcome(mended.token).kind == "complete"
    assert pipeline.orders().count(7) == 1


def last_offset(pipeline: Mended) -> int:
    """Of what died in the topic between the stages: its dead letter says where."""
    (letter,) = read_to_end(pipeline.stack.kafka, f"{pipeline.name}.inner.dlq", [0])
    headers = dict(letter.headers() or ())
    return int(headers["__connect.errors.offset"] or b"")
