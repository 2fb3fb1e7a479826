"""What somebody outside sees: metrics behind the gateway, and the lag of consumer groups."""

import httpx2

from kafka_groups import group_offsets
from scraping import Scrape, read_scrape
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin


def scrape(stack: StackState, service: str) -> Scrape:
    answer = httpx2.get(f"{stack.url}/metrics/{service}")
    assert answer.status_code == 200, answer.text
    return read_scrape(answer.text)


def lag_of_group(kafka: KafkaAdmin, group: str) -> int | None:
    """Ends of its topics less its offsets, as Kafka's own tools count; None without offsets."""
    offsets = group_offsets(kafka, group)
    ends = {topic: _ends(kafka, topic) for topic, _ in offsets}
    lags = [ends[topic][partition] - at for (topic, partition), at in offsets.items()]
    return sum(lags) if lags else None


def _ends(kafka: KafkaAdmin, topic: str) -> dict[int, int]:
    return kafka.ends(topic, kafka.identify([topic])[topic].partitions)
