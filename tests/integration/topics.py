"""What an operator may do to our own topics."""

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from integration.conftest import Surroundings, can_be_read
from integration.waiting import eventually
from waybill_shared.kafka.admin import KafkaAdmin, make_admin

PARTITIONS = 8
WITHIN_S = 120.0


def create_anew(around: Surroundings, name: str) -> None:
    admin, topic = make_admin(around.kafka), f"{around.prefix}.{name}"
    old = admin.identify([topic])[topic].topic_id
    admin.client.delete_topics([topic])[topic].result()
    eventually(lambda: not admin.identify([topic]), within_s=WITHIN_S)
    eventually(lambda: _created(admin, topic), within_s=WITHIN_S)
    eventually(lambda: _id(admin, topic) not in (None, old), within_s=WITHIN_S)
    eventually(lambda: can_be_read(admin, around.prefix), within_s=WITHIN_S)


def _created(admin: KafkaAdmin, topic: str) -> bool:
    """The broker may still be busy with the old one."""
    error = admin.client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].exception(WITHIN_S)
    return error is None or error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def _id(admin: KafkaAdmin, topic: str) -> str | None:
    found = admin.identify([topic]).get(topic)
    return None if found is None else found.topic_id
