"""A topic of ours that was created anew ends the process that knows the old one."""

from dataclasses import dataclass, field

import pytest

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.own_topics import CHECK_INTERVAL_S, OwnTopics, TopicRecreated


@dataclass
class Cluster(KafkaAdmin):
    topics: dict[str, str] = field(default_factory=lambda: {"w.commits": "one"})
    away: bool = False
    now: float = 0.0

    def identify(self, topics: object) -> dict[str, TopicIdentity]:
        if self.away:
            raise Retryable("kafka is away")
        return {
            name: TopicIdentity(name=name, topic_id=topic_id, partitions=(0,))
            for name, topic_id in self.topics.items()
        }

    def later(self) -> float:
        self.now += CHECK_INTERVAL_S
        return self.now


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def topics(cluster: Cluster) -> OwnTopics:
    topics = OwnTopics(cluster, ["w.commits"], now=cluster.later)
    assert topics.id_of("w.commits") == "one"
    return topics


def test_another_id_under_the_name_ends_the_process(cluster: Cluster, topics: OwnTopics) -> None:
    topics.check()
    cluster.topics["w.commits"] = "two"
    with pytest.raises(TopicRecreated, match=r"w\.commits was created again: it had id one"):
        topics.check()


def test_a_topic_that_is_away_is_waited_for(cluster: Cluster, topics: OwnTopics) -> None:
    cluster.away = True
    topics.check()
    cluster.away = False
    cluster.topics.clear()
    topics.check()
    assert topics.id_of("w.commits") == "one"


def test_a_topic_that_is_not_there_yet_is_waited_for(cluster: Cluster) -> None:
    cluster.topics.clear()
    topics = OwnTopics(cluster, ["w.commits"])
    with pytest.raises(Retryable, match="does not exist"):
        topics.id_of("w.commits")
    cluster.topics["w.commits"] = "one"
    assert topics.id_of("w.commits") == "one"


def test_who_requires_a_topic_that_is_another_one_is_refused_and_ends_at_the_next_check(
    cluster: Cluster,
) -> None:
    topics = OwnTopics(cluster, ["w.commits"], now=lambda: 0.0)
    topics.require("w.commits")
    cluster.topics["w.commits"] = "two"
    topics.check()  # not due
    with pytest.raises(Retryable, match="it had id one, now it has two"):
        topics.require("w.commits")
    with pytest.raises(TopicRecreated):
        topics.check()


def test_what_kafka_does_not_tell_is_not_taken_for_granted(cluster: Cluster) -> None:
    topics = OwnTopics(cluster, ["w.commits"])
    topics.require("w.commits")
    cluster.away = True
    with pytest.raises(Retryable, match="kafka is away"):
        topics.require("w.commits")
