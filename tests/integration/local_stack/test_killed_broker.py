"""The broker of the stack is killed at its worst moment, and starts again with its data."""

import pytest
from confluent_kafka.admin import NewTopic

from integration.brokers import make_broker, running
from integration.lossy import WRITE_TXN_MARKERS, LossyRoad
from integration.waiting import eventually
from waybill_local.ports import address, pick
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.topics import create_missing

TOPIC = "orders"
TIMES = 3  # each shows it in half of the cases
WRITTEN = 2  # a record, and the end of its transaction
READ_WITHIN_S = 120.0


def test_what_was_committed_just_before_it_was_killed_is_read_after_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Its partitions were not told yet of the end of the transaction."""
    ports = pick({"kafka": 0, "controller": 0})
    with LossyRoad(ports["kafka"]) as road:
        kafka = make_broker(tmp_path_factory, ports, advertised_port=road.port)
        admin = make_admin(address(road.port))
        with running(kafka):
            create_missing(admin, [NewTopic(TOPIC, 1, 1)])
        for killed in range(TIMES):
            with running(kafka) as child:
                _await_end(admin, killed * WRITTEN)
                producer = make_producer(admin.cluster, **{"transactional.id": "t"})
                producer.init_transactions(READ_WITHIN_S)
                producer.begin_transaction()
                producer.produce(TOPIC, b"an order")
                producer.flush(READ_WITHIN_S)
                road.close_to(WRITE_TXN_MARKERS)
                producer.commit_transaction(READ_WITHIN_S)
                assert admin.stable_ends(TOPIC, [0]) == {0: killed * WRITTEN}
                child.process.kill()
                child.process.wait()
            road.open_to(WRITE_TXN_MARKERS)
        with running(kafka):
            _await_end(admin, TIMES * WRITTEN)


def _await_end(admin: KafkaAdmin, end: int) -> None:
    """Of what can be read by who reads what was committed."""
    eventually(lambda: admin.stable_ends(TOPIC, [0]) == {0: end}, within_s=READ_WITHIN_S)
