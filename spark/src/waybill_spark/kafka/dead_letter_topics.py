"""Dead-letter topics: which one belongs to each topic, and the creation of missing ones.

They are created when a run opens, so that missing rights are reported before any record is dead.
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
    """Return the dead-letter topics, by the topic that a record is read from."""
    return {topic: manifest.dead_letter_topic(topic) for topic in sources}


def make_absent(admin: KafkaAdmin, topics: Mapping[str, str], replication: int) -> None:
    """Create the missing ones of `topics`, which `topics_for` returned.

    Each gets as many partitions as its source has.
    """
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
