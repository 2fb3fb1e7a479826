"""That a topic is gone is said only when those who must know it agree."""

from collections.abc import Iterable
from typing import cast

import pytest
from pyspark.sql import SparkSession

from batch_reading import in_pieces_of
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.driver.reading.topics import TopicSource
from waybill_spark.kafka import topic_ids
from waybill_spark.tracking.batch_rows import BatchRows

WANTED = {"a": "id of a", "b": "id of b"}


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


class Brokers:
    """Those of a topic `a`, which is told with these ids, one behind the other."""

    def __init__(self, *ids: str) -> None:
        self._ids = list(ids)
        self.asked = 0

    def identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        topic_id = self._ids[min(self.asked, len(self._ids) - 1)]
        self.asked += 1
        return {"a": TopicIdentity(name="a", topic_id=topic_id, partitions=(0,))}


class Session:
    def newSession(self) -> "Session":  # noqa: N802 - Spark's name
        return self


def source(cluster: Cluster | Brokers, *, absent_s: float = 0.0) -> TopicSource:
    return TopicSource(
        cast(KafkaAdmin, cluster),
        cast(SparkSession, Session()),
        "",
        lambda frame: BatchRows({}),
        lambda record, verdict: pytest.fail("no record is dead"),
        sizes=RecordSizes(),
        limits=in_pieces_of(1),
        absent_s=absent_s,
    )


def test_a_topic_that_nobody_knows_is_absent() -> None:
    cluster = Cluster([{"a"}], {"a"})
    assert source(cluster).ids(WANTED) == {"a": "id of a"}


def test_a_broker_that_lags_is_not_believed() -> None:
    cluster = Cluster([{"a"}], {"a", "b"})
    with pytest.raises(Retryable, match="topic b: the controller has it"):
        source(cluster).ids(WANTED)


def test_a_broker_may_learn_of_a_topic_in_the_meantime() -> None:
    cluster = Cluster([set(), {"a"}], set())
    assert source(cluster, absent_s=60.0).ids({"a": "id of a"}) == {"a": "id of a"}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids, "POLL_S", 0.01)
    monkeypatch.setattr(topic_ids, "OTHER_ID_S", 0.1)


@pytest.mark.usefixtures("soon")
def test_one_answer_of_a_broker_that_lags_makes_no_topic_another_one() -> None:
    """It may tell an id from before the pipeline, which no definition knows."""
    with pytest.raises(Retryable, match="topic a: brokers do not agree"):
        source(Brokers("before", "now"), absent_s=60.0).ids({"a": "now"})


@pytest.mark.usefixtures("soon")
def test_a_topic_is_another_one_when_its_id_is_not_told_any_more() -> None:
    brokers = Brokers("anew")
    assert source(brokers, absent_s=60.0).ids({"a": "now"}) == {"a": "anew"}
    assert brokers.asked > 2, "of a few questions, all may go to the broker that lags"


def test_an_id_as_it_was_is_asked_for_once() -> None:
    brokers = Brokers("now")
    assert source(brokers, absent_s=60.0).ids({"a": "now"}) == {"a": "now"}
    assert brokers.asked == 1
