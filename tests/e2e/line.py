"""A pipeline of two stages in a line, and every order that must be at its end."""

import uuid
from itertools import count

from confluent_kafka.admin import NewTopic
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.reading import committed_orders, rows_of
from e2e.waiting import eventually
from waybill import Client, Position
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract import codec
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import Obstacle
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_spark.sinks.iceberg.fences import FENCE

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: {partitions}}}
    key: order_id
    startingOffsets: {starting}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: first
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: known, sql: "SELECT * FROM orders WHERE customer <> 'nobody'"}}]
    sinks:
      - {{name: middle, kafka: {{topic: {name}.middle, key: order_id, partitions: {partitions}}}}}
  - name: second
    inputs: [middle]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: wanted, sql: "SELECT * FROM middle WHERE customer <> 'unwanted'"}}]
    sinks:
      - {{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}
      - {{name: lake, iceberg: {{table: raw.{table}}}}}
"""


class Line:
    def __init__(
        self, client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
    ) -> None:
        self.client = client
        self._stack = stack
        self._kafka = kafka
        self._catalog = catalog
        self.name = f"line-{uuid.uuid4().hex[:8]}"
        self.topic = f"{self.name}.in"
        self.table = f"raw.{self.name.replace('-', '_')}"
        self.numbers = count()
        self.wanted: set[int] = set()

    def create_input(self, settings: dict[str, str] | None = None) -> str:
        """The input topic before there is a pipeline that would create it; its name."""
        topic = NewTopic(self.topic, 1, 1, config=settings or {})
        self._kafka.client.create_topics([topic])[self.topic].result()
        return self.topic

    def apply(self, *, partitions: int = 1, starting: str = "earliest") -> None:
        manifest = MANIFEST.format(
            name=self.name,
            table=self.table.removeprefix("raw."),
            partitions=partitions,
            starting=starting,
        )
        done = self.client.operation(self.client.apply(manifest).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        self.uid = str(self.client.pipeline(self.name).uid)

    def restart(self) -> None:
        stopped = self.client.operation(self.client.stop(self.name).id, wait_s=WAIT_S)
        assert stopped.state == "done", stopped.errors
        started = self.client.operation(self.client.start(self.name).id, wait_s=WAIT_S)
        assert started.state == "done", started.errors

    def orders(self, size: int, *, wanted: bool = True) -> list[dict[str, object]]:
        made = [order(next(self.numbers)) for _ in range(size)]
        if wanted:
            self.wanted |= {int(str(each["order_id"])) for each in made}
        return made

    def send(self, size: int) -> str:
        return self.client.send(self.name, "orders", self.orders(size)).token

    def send_filtered(self, customer: str) -> str:
        filtered = [{**each, "customer": customer} for each in self.orders(3, wanted=False)]
        return self.client.send(self.name, "orders", filtered).token

    def token_for_all(self) -> str:
        """For all that the input holds now."""
        return self.client.token_for(self.name, input="orders").token

    def token_for(self, *places: tuple[int, int]) -> str:
        """For partitions and offsets of the input, as a producer of its own would ask."""
        topic_id = self._kafka.identify([self.topic])[self.topic].topic_id
        positions = [
            Position(topic=self.topic, topic_id=topic_id, partition=partition, offset=offset)
            for partition, offset in places
        ]
        return self.client.token_for(self.name, positions=positions).token

    def assert_once(self, token: str) -> None:
        """The token completes, and all that is wanted, nothing else, is there once at the end."""
        outcome = self.client.wait(token, timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        out = committed_orders(self._stack, self._kafka, f"{self.name}.out")
        assert sorted(out) == sorted(self.wanted)
        lake = rows_of(self._catalog, self.table, outcome.iceberg_snapshots["lake"])
        assert sorted(lake.column("order_id").to_pylist()) == sorted(self.wanted)

    def assert_held_up(self, token: str) -> None:
        """Nothing is complete until it is said what the token waits for."""
        kinds: set[str] = set()

        def named() -> bool:
            outcome = self.client.outcome(token)
            kinds.add(outcome.kind)
            return Obstacle.BLOCKED_BY_OPEN_TRANSACTION in {
                stage.blocked_by for stage in outcome.stages
            }

        eventually(named, within_s=WAIT_S)
        assert "complete" not in kinds

    def sequences(self) -> dict[str, int]:
        """How often each sink's fence has moved."""
        topic = f"{topic_prefix()}.fences"
        partitions = self._kafka.identify([topic])[topic].partitions
        messages = read_to_end(self._stack.kafka, topic, partitions)
        properties = self._catalog.load_table(self.table).properties
        fences = [codec.decode(Fence, message.value() or b"") for message in messages]
        fences += [
            codec.from_json(Fence, text)
            for name, text in properties.items()
            if name.startswith(FENCE)
        ]
        return {
            fence.sink: fence.batch.sequence for fence in fences if fence.pipeline_uid == self.uid
        }
