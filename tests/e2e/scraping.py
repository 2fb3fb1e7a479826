"""Reads what Prometheus would read, and Kafka's consumer groups as any tool would."""

from dataclasses import dataclass

import httpx2
from confluent_kafka import ConsumerGroupTopicPartitions
from prometheus_client.parser import text_string_to_metric_families

from local_stack.stack import StackState
from shared.kafka import KafkaAdmin


@dataclass(frozen=True)
class Scrape:
    """All samples of one service at one moment."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float | None:
        """None: there is no such series."""
        return self.samples.get((name, frozenset(labels.items())))

    def names(self, **labels: str) -> set[str]:
        """Of all that has a series with these labels, and any others."""
        return {name for name, has in self.samples if has >= labels.items()}

    def not_ready(self) -> list[dict[str, str]]:
        return [dict(has) for (n, has), v in self.samples.items() if n == "waybill_ready" and not v]


def scrape(stack: StackState, service: str) -> Scrape:
    answer = httpx2.get(f"{stack.url}/metrics/{service}")
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    samples = [sample for family in families for sample in family.samples]
    return Scrape({(s.name, frozenset(s.labels.items())): s.value for s in samples})


def lag_of_group(kafka: KafkaAdmin, group: str) -> int | None:
    """Ends of its topics less its offsets, as Kafka's own tools count; None without offsets."""
    asked = kafka.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = asked[group].result().topic_partitions or []
    ends = {topic: _ends(kafka, topic) for topic in {place.topic for place in places}}
    lags = [ends[place.topic][place.partition] - place.offset for place in places]
    return sum(lags) if lags else None


def groups(kafka: KafkaAdmin, prefix: str) -> set[str]:
    listed = kafka.client.list_consumer_groups().result().valid or []
    return {each.group_id for each in listed if each.group_id.startswith(prefix)}


def _ends(kafka: KafkaAdmin, topic: str) -> dict[int, int]:
    return kafka.ends(topic, kafka.identify([topic])[topic].partitions)
