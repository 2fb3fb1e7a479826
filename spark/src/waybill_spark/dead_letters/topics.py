"""Dead-letter topics: where the dead of each topic go, and those topics made where there are none.

They are made when a run opens, so that who may not make them hears of it before a record died.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka.admin import NewTopic

from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.topics import create_missing

# A record is larger there than in its source: it has headers that say why it died.
CONFIG: Final = {"max.message.bytes": "10485760"}


def topics_for(manifest: Manifest, sources: Iterable[str]) -> dict[str, str]:
    """By the topic that a record is read from."""
    return {topic: manifest.dead_letter_topic(topic) for topic in sources}


def make_absent(admin: KafkaAdmin, topics: Mapping[str, str], replication: int) -> None:
    """`topics` as by `topics_for`; each is made with as many partitions as its source has."""
    present = admin.identify({*topics, *topics.values()})
    partitions: dict[str, int] = {}
    for source, topic in topics.items():
        number = len(present[source].partitions) if source in present else 1
        partitions[topic] = max(number, partitions.get(topic, 0))
    missing = [
        NewTopic(topic, number, replication, config=CONFIG)
        for topic, number in sorted(partitions.items())
        if topic not in present
    ]
    if missing:
        create_missing(admin, missing)
