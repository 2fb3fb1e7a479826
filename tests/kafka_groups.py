"""Consumer groups as any tool sees them."""

from confluent_kafka import ConsumerGroupTopicPartitions

from waybill_shared.kafka.admin import KafkaAdmin


def group_offsets(kafka: KafkaAdmin, group: str) -> dict[tuple[str, int], int]:
    """By topic and partition; nothing for a group that does not exist."""
    asked = kafka.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = asked[group].result().topic_partitions or []
    return {(place.topic, place.partition): place.offset for place in places}


def group_names(kafka: KafkaAdmin, prefix: str) -> set[str]:
    listed = kafka.client.list_consumer_groups().result().valid or []
    return {each.group_id for each in listed if each.group_id.startswith(prefix)}
