"""Reads sinks as their users do: committed records of a topic, one snapshot of a table."""

import json
import uuid

import pyarrow as pa
from confluent_kafka import TopicPartition
from pyiceberg.catalog.sql import SqlCatalog

from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_consumer

WAIT_S = 120.0


def rows_of(catalog: SqlCatalog, table: str, snapshot_id: int) -> pa.Table:
    """The rows that a reader of exactly this snapshot sees."""
    return catalog.load_table(table).scan(snapshot_id=snapshot_id).to_arrow()


def committed_orders(stack: StackState, kafka: KafkaAdmin, topic: str) -> list[int]:
    """Order ids that a fresh reader of committed records finds, in the order of the log."""
    stable = kafka.stable_ends(topic, [0])[0]
    consumer = make_consumer(stack.kafka, uuid.uuid4().hex, **{"enable.partition.eof": True})
    found: list[int] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, "the reader never came to the end"
            if message.error() is not None:
                offset = message.offset()
                if offset is not None and offset >= stable:
                    return found
                continue
            found.append(int(json.loads(message.value() or b"{}")["order_id"]))
    finally:
        consumer.close()
