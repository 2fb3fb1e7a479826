"""Dead letters that the stage where they died processes again, on the whole stack.

The tests ask for it themselves (`replays_at_rest`), so that they choose single sinks.
"""

import json
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from e2e.replays_at_rest import Replayer
from waybill import Client, Outcome, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait, read_to_end
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0
SHARES = {"broken": "100 div amount", "mended": "100 div nullif(amount, 0)"}
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
    sinks:
      - {{name: out, kafka: {{topic: {name}.out, partitions: 1}}}}
      - {{name: copy, kafka: {{topic: {name}.copy, partitions: 1}}}}
"""


class Mended:
    def __init__(self, client: Client, stack: StackState, kafka: KafkaAdmin) -> None:
        self.client = client
        self.stack = stack
        self.name = f"rest-{uuid.uuid4().hex[:8]}"
        self._kafka = kafka
        self._producer = make_producer(stack.kafka)
        self.replayer = Replayer(client, stack, kafka, self.name)
        create_missing(kafka, [NewTopic(f"{self.name}.in", 1, 1)])
        self.apply("broken", least=-10)

    def apply(self, share: str, *, least: int) -> None:
        text = MANIFEST.format(name=self.name, least=least, share=SHARES[share])
        done = self.client.operation(self.client.apply(text).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.client.wait_pipeline(self.name, timeout_s=WAIT_S)

    def send(self, order: int, amount: int) -> str:
        value = json.dumps({"order_id": order, "amount": amount}).encode()
        message = produce_and_wait(self._producer, f"{self.name}.in", "key", value)
        partition, offset = position_of(message)
        topic_id = self._kafka.identify([f"{self.name}.in"])[f"{self.name}.in"].topic_id
        place = Position(
            topic=f"{self.name}.in", topic_id=topic_id, partition=partition, offset=offset
        )
        return self.client.token_for(self.name, positions=[place]).token

    def outcome(self, token: str) -> Outcome:
        return self.client.wait(token, timeout_s=WAIT_S)

    def orders(self, topic: str) -> list[int]:
        messages = read_to_end(self.stack.kafka, f"{self.name}.{topic}", [0])
        return [json.loads(message.value() or b"")["order_id"] for message in messages]

    def letters(self, topic: str) -> list[Message]:
        return self.replayer.letters(f"{self.name}.{topic}")

    def replay(self, letter: Message, *sinks: str) -> str:
        return self.replayer.replay([letter], *sinks)


@pytest.fixture(scope="module")
def pipeline(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Mended]:
    made = Mended(client, stack, kafka)
    yield made
    client.delete(made.name)


def test_a_record_that_died_in_a_later_stage_comes_back_there(pipeline: Mended) -> None:
    """Its own token stays as it was. What the first stage has written is not written again."""
    assert pipeline.outcome(pipeline.send(1, 5)).kind == "complete"
    token = pipeline.send(2, 0)
    assert pipeline.outcome(token).kind == "dead_lettered"
    (letter,) = pipeline.letters("inner")

    still = pipeline.outcome(pipeline.replay(letter, "out", "copy"))
    assert still.kind == "dead_lettered"
    (dead,) = still.dead
    assert (dead.topic, dead.stage, dead.reason) == (f"{pipeline.name}.inner", "second", "failed")
    assert dead.exact
    _, again = pipeline.letters("inner")
    assert dead.id is not None
    assert dead.id.split(":")[2] == str(position_of(again)[1])

    pipeline.apply("mended", least=-10)
    done = pipeline.outcome(pipeline.replay(again, "copy"))
    assert done.kind == "complete"
    assert [(s.stage, [k.name for k in s.sinks]) for s in done.stages] == [("second", ["copy"])]
    assert sorted(pipeline.orders("copy")) == [1, 2]
    assert pipeline.orders("out") == [1]
    assert pipeline.outcome(pipeline.replay(again, "out")).kind == "complete"
    assert sorted(pipeline.orders("out")) == [1, 2]
    assert pipeline.orders("inner") == [1, 2]
    assert pipeline.outcome(token).kind == "dead_lettered"
    assert pipeline.outcome(pipeline.send(3, 4)).kind == "complete", "batches go on"


def test_what_comes_of_a_record_of_the_first_stage_reaches_the_last(pipeline: Mended) -> None:
    token = pipeline.send(7, -50)
    assert pipeline.outcome(token).kind == "dead_lettered"
    letter = pipeline.letters("in")[-1]
    pipeline.apply("mended", least=-100)
    done = pipeline.outcome(pipeline.replay(letter, "inner"))
    assert done.kind == "complete"
    assert [stage.stage for stage in done.stages] == ["first", "second"]
    assert pipeline.orders("out").count(7) == pipeline.orders("copy").count(7) == 1
    assert pipeline.orders("in").count(7) == 1
