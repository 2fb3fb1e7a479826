"""`Log` and `Topics` of ingress: records stand where that is said, in a topic with an id."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import pytest

from waybill_ingress.app.ports import Log, Topics
from waybill_ingress.core.rows import Record
from waybill_shared.contract.errors import Retryable

T = TypeVar("T")
PARTITIONS: Final = (0, 1)
RECORDS: Final = tuple(Record(row, None, b'{"number": %d}' % row) for row in (1, 2, 3, 4))


class Bench(Protocol):
    """A Kafka with one topic, which is empty and has two partitions."""

    topic: str

    @property
    def log(self) -> Log: ...

    @property
    def topics(self) -> Topics: ...

    def run(self, work: Callable[[], Awaitable[T]]) -> T: ...

    def delete(self) -> None: ...

    def create_anew(self) -> None: ...


class LogContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_each_record_stands_where_that_is_said(self, bench: Bench) -> None:
        written = bench.run(lambda: bench.log.append(bench.topic, RECORDS))
        assert not written.failed and not written.refused
        ends = bench.run(lambda: bench.topics.ends(bench.topic, PARTITIONS))
        assert sorted(written.delivered) == [(p, at) for p in PARTITIONS for at in range(ends[p])]
        assert len(written.delivered) == len(RECORDS)

    def test_later_records_stand_behind_earlier_ones(self, bench: Bench) -> None:
        bench.run(lambda: bench.log.append(bench.topic, RECORDS))
        before = bench.run(lambda: bench.topics.ends(bench.topic, PARTITIONS))
        written = bench.run(lambda: bench.log.append(bench.topic, RECORDS))
        assert all(offset >= before[partition] for partition, offset in written.delivered)

    def test_nothing_is_written_of_nothing(self, bench: Bench) -> None:
        written = bench.run(lambda: bench.log.append(bench.topic, ()))
        assert not written.delivered and not written.failed
        assert bench.run(lambda: bench.topics.ends(bench.topic, PARTITIONS)) == {0: 0, 1: 0}

    def test_what_no_topic_takes_is_named(self, bench: Bench) -> None:
        bench.delete()
        written = bench.run(lambda: bench.log.append(bench.topic, RECORDS))
        assert written.delivered == []
        assert [each.index for each in written.failed] == [record.row for record in RECORDS]


class TopicsContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_described_topic_has_an_id_and_its_partitions(self, bench: Bench) -> None:
        assert bench.topics.last_seen(bench.topic) is None
        found = bench.run(lambda: bench.topics.describe(bench.topic))
        assert found is not None
        assert (found.name, found.partitions, bool(found.topic_id)) == (bench.topic, (0, 1), True)
        assert bench.topics.last_seen(bench.topic) == found

    def test_topic_that_was_created_anew_has_another_id(self, bench: Bench) -> None:
        before = bench.run(lambda: bench.topics.describe(bench.topic))
        bench.create_anew()
        assert bench.topics.last_seen(bench.topic) == before
        after = bench.run(lambda: bench.topics.describe(bench.topic))
        assert before is not None
        assert after is not None
        assert before.topic_id != after.topic_id

    def test_topic_that_is_gone_is_none(self, bench: Bench) -> None:
        bench.run(lambda: bench.topics.describe(bench.topic))
        bench.delete()
        assert bench.run(lambda: bench.topics.describe(bench.topic)) is None
        assert bench.topics.last_seen(bench.topic) is None
        for question in (bench.topics.starts, bench.topics.ends):
            with pytest.raises(Retryable):
                bench.run(lambda ask=question: ask(bench.topic, PARTITIONS))  # type: ignore[misc]

    def test_only_partitions_that_are_asked_for_are_told(self, bench: Bench) -> None:
        assert bench.run(lambda: bench.topics.starts(bench.topic, [1])) == {1: 0}
        assert bench.run(lambda: bench.topics.ends(bench.topic, [1])) == {1: 0}

    def test_cluster_has_one_name(self, bench: Bench) -> None:
        name = bench.run(bench.topics.cluster_id)
        assert name
        assert bench.run(bench.topics.cluster_id) == name
