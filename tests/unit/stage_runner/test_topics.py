"""A pipeline is not defined by the word of one broker: what is before its begin is lost for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from waybill_shared.contract.errors import Retryable, UserError
from waybill_shared.kafka import majority
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.cluster import KafkaCluster
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.core.pipelines.planning import TopicPlan
from waybill_stage_runner.core.pipelines.putting import ReplaysTopic

PLAN = TopicPlan(topic="t", partitions=1, starting="earliest")


@dataclass
class Kafka:
    """Brokers of a topic `t`, each with the offset at which it begins there."""

    begins: Mapping[str, int]
    ids: list[str] = field(default_factory=lambda: ["now"])
    cluster: KafkaCluster = field(default_factory=lambda: KafkaCluster(bootstrap="one"))

    def brokers(self) -> list[str]:
        return list(self.begins)

    def operations(self, resource: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
        return {}

    def forbidden(self, topics: Iterable[str]) -> list[str]:
        return []

    def identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        if "t" not in topics:
            return {}
        topic_id = self.ids.pop(0) if len(self.ids) > 1 else self.ids[0]
        return {"t": TopicIdentity(name="t", topic_id=topic_id, partitions=(0,))}

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return {0: self.begins[self.cluster.bootstrap]}

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return {0: 100}


def topics(kafka: Kafka) -> KafkaTopics:
    return KafkaTopics(cast(KafkaAdmin, kafka), prefix="waybill", replication=1)


def test_a_pipeline_begins_where_most_brokers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    begins = {"one": 20, "two": 0, "three": 0}

    def client(cluster: KafkaCluster) -> KafkaAdmin:
        return cast(KafkaAdmin, Kafka(begins, cluster=cluster))

    monkeypatch.setattr(majority, "make_admin", client)
    state = topics(Kafka(begins)).prepare([PLAN])["t"]
    assert (state.starts, state.ends) == ({0: 0}, {0: 100})


def test_topic_that_we_may_not_use_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker does not tell its id either, and that alone would be asked for again and again."""

    def identify(self: Kafka, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        raise Retryable("topic t: topic authorization failed")

    def operations(self: Kafka, resource: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
        return dict.fromkeys(names, frozenset[str]())

    monkeypatch.setattr(Kafka, "identify", identify)
    monkeypatch.setattr(Kafka, "operations", operations)
    with pytest.raises(UserError, match="Read on topic t"):
        topics(Kafka({"one": 0})).ids([PLAN])
    with pytest.raises(UserError, match="Read on topic t"):
        topics(Kafka({"one": 0})).prepare([PLAN])


def test_dead_letters_need_the_right_to_write_there_and_no_topic_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor looked at for more: where its readers begin is nobody's question."""
    plan = replace(PLAN, dead_letters="t.dlq")
    assert topics(Kafka({"one": 0})).prepare([plan]).keys() == {"t"}
    assert topics(Kafka({"one": 0})).ids([plan]).keys() == {"t"}

    def operations(self: Kafka, resource: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
        return {"t": frozenset({"Read"}), "t.dlq": frozenset({"Read"})}

    monkeypatch.setattr(Kafka, "operations", operations)
    with pytest.raises(UserError, match=r"lacks Write on topic t\.dlq"):
        topics(Kafka({"one": 0})).ids([plan])


def test_dead_letters_without_a_topic_need_the_right_to_make_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(self: Kafka, topics: Iterable[str]) -> list[str]:
        return sorted(topics)

    monkeypatch.setattr(Kafka, "forbidden", forbidden)
    with pytest.raises(UserError, match=r"no topic t\.dlq, and .* lacks Create"):
        topics(Kafka({"one": 0})).prepare([replace(PLAN, dead_letters="t.dlq")])
    assert topics(Kafka({"one": 0})).prepare([PLAN]).keys() == {"t"}


@pytest.mark.parametrize("ids", [["before", "now"], ["now", "now", "before", "now"]])
def test_while_brokers_tell_two_ids_there_is_no_answer(ids: list[str]) -> None:
    with pytest.raises(Retryable, match="brokers do not agree on topics t"):
        topics(Kafka({"one": 0}, ids=[*ids])).prepare([PLAN])
    with pytest.raises(Retryable, match="brokers do not agree on topics t"):
        topics(Kafka({"one": 0}, ids=[*ids])).ids([PLAN])


def test_our_own_topic_of_replays_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def identify(self: Kafka, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        return {n: TopicIdentity(name=n, topic_id=f"id of {n}", partitions=(0,)) for n in topics}

    monkeypatch.setattr(Kafka, "identify", identify)
    monkeypatch.setattr(Kafka, "stable_ends", Kafka.ends, raising=False)
    found = topics(Kafka({"one": 20})).replays()
    assert found == ReplaysTopic(
        name="waybill.replays", topic_id="id of waybill.replays", ends={0: (20, 100)}
    )


def test_a_topic_of_replays_that_a_broker_does_not_know_is_asked_for_again() -> None:
    with pytest.raises(Retryable, match="does not know it"):
        topics(Kafka({"one": 20})).replays()
