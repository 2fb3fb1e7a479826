"""`Topics` of the runner: made when they are missing, and where readers of them begin."""

from dataclasses import replace
from typing import Final, Protocol

from waybill_stage_runner.app.ports import Topics
from waybill_stage_runner.core.pipelines.planning import TopicPlan

PARTITIONS: Final = 2


class Bench(Protocol):
    """A Kafka; `topic` is the name of none as yet."""

    topic: str

    @property
    def topics(self) -> Topics: ...

    def write(self) -> None:
        """A record into each partition of the topic."""


class TopicsContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_missing_topic_is_made(self, bench: Bench) -> None:
        assert bench.topics.ids([plan(bench)]) == {}
        state = bench.topics.prepare([plan(bench)])[bench.topic]
        other = replace(plan(bench), topic=f"{bench.topic}.none")
        assert bench.topics.ids([plan(bench), other]) == {bench.topic: state.topic_id}
        assert state.starts.keys() == state.ends.keys() == {*range(PARTITIONS)}

    def test_topic_that_is_there_stays(self, bench: Bench) -> None:
        made = bench.topics.prepare([plan(bench)])
        assert bench.topics.prepare([plan(bench)]) == made

    def test_readers_begin_at_the_first_or_behind_the_last_record(self, bench: Bench) -> None:
        bench.topics.prepare([plan(bench)])
        bench.write()
        earliest = bench.topics.prepare([plan(bench)])[bench.topic]
        latest = bench.topics.prepare([plan(bench, "latest")])[bench.topic]
        assert latest.starts == latest.ends == earliest.ends
        for partition, start in earliest.starts.items():
            assert start < earliest.ends[partition]

    def test_nothing_is_asked_of_nothing(self, bench: Bench) -> None:
        assert bench.topics.ids([]) == {}
        assert bench.topics.prepare([]) == {}


def plan(bench: Bench, starting: str = "earliest") -> TopicPlan:
    return TopicPlan(topic=bench.topic, partitions=PARTITIONS, starting=starting)
