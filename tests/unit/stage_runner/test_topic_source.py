"""That a topic is gone is said only when those who must know it agree."""

from collections.abc import Iterable
from typing import cast

import pytest
from pyspark.sql import SparkSession

from shared.errors import Retryable
from shared.kafka_admin import KafkaAdmin, TopicIdentity
from stage_runner.driver.sizes import RecordSizes
from stage_runner.driver.topics import TopicSource


class Cluster:
    """One broker's answers, one behind the other, and what the controller has."""

    def __init__(self, answers: Iterable[set[str]], topics: set[str]) -> None:
        self._answers = iter(answers)
        self._topics = topics
        self._known: set[str] = set()

    def identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        self._known = next(self._answers, self._known)
        found = self._known & set(topics)
        return {
            name: TopicIdentity(name=name, topic_id=f"id of {name}", partitions=(0,))
            for name in found
        }

    def absent(self, topic: str) -> bool:
        return topic not in self._topics


class Session:
    def newSession(self) -> "Session":  # noqa: N802 - Spark's name
        return self


def source(cluster: Cluster, *, absent_s: float = 0.0) -> TopicSource:
    return TopicSource(
        cast(KafkaAdmin, cluster),
        cast(SparkSession, Session()),
        "",
        lambda frame: {},
        sizes=RecordSizes(),
        bytes_max=1,
        absent_s=absent_s,
    )


def test_a_topic_that_nobody_knows_is_absent() -> None:
    cluster = Cluster([{"a"}], {"a"})
    assert source(cluster).ids(["a", "b"]) == {"a": "id of a"}


def test_a_broker_that_lags_is_not_believed() -> None:
    cluster = Cluster([{"a"}], {"a", "b"})
    with pytest.raises(Retryable, match="topic b: the controller has it"):
        source(cluster).ids(["a", "b"])


def test_a_broker_may_learn_of_a_topic_in_the_meantime() -> None:
    cluster = Cluster([set(), {"a"}], set())
    assert source(cluster, absent_s=60.0).ids(["a"]) == {"a": "id of a"}
