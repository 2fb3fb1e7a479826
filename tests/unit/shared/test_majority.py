"""What one broker says of offsets is not believed against the others."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import pytest

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka import majority
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.cluster import KafkaCluster
from waybill_shared.kafka.majority import highest_ends, lowest


@dataclass
class Kafka:
    """A client of the broker that `cluster` names, and the ends that each broker tells."""

    told: dict[str, int | None]
    cluster: KafkaCluster = field(default_factory=lambda: KafkaCluster(bootstrap="any"))

    def brokers(self) -> list[str]:
        return list(self.told)

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        end = self.told[self.cluster.bootstrap]
        if end is None:
            raise Retryable(f"{self.cluster.bootstrap} does not answer")
        return dict.fromkeys(partitions, end)


def kafka(monkeypatch: pytest.MonkeyPatch, **told: int | None) -> KafkaAdmin:
    def make(cluster: KafkaCluster) -> KafkaAdmin:
        return cast(KafkaAdmin, Kafka(told, cluster))

    monkeypatch.setattr(majority, "make_admin", make)
    return cast(KafkaAdmin, Kafka(told))


@pytest.mark.parametrize("behind", ["one", "two", "three"])
def test_the_newest_end_is_read_up_to_by_who_knows_it(
    monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    admin = kafka(monkeypatch, **{"one": 7, "two": 7, "three": 7, behind: 4})
    ends, reader = highest_ends(admin, "t", [0, 1])
    assert ends == {0: 7, 1: 7}
    assert reader.cluster.bootstrap != behind


def test_those_cut_off_together_are_fewer_than_who_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may answer first, however few would be asked."""
    stale = {f"stale{number}": 4 for number in range(8)}
    live = {f"live{number}": 7 for number in range(9)}
    for _ in range(50):
        assert highest_ends(kafka(monkeypatch, **stale, **live), "t", [0])[0] == {0: 7}


def test_reader_is_who_knows_the_most_of_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lags may have the greatest sum: of a partition that is long."""
    ends = {"one": {0: 900, 1: 4, 2: 4}, "two": {0: 800, 1: 7, 2: 7}, "three": {0: 800, 1: 7, 2: 7}}
    admin = kafka(monkeypatch, one=0, two=0, three=0)
    monkeypatch.setattr(Kafka, "ends", lambda self, *asked: ends[self.cluster.bootstrap])
    for _ in range(20):
        assert highest_ends(admin, "t", [0, 1, 2])[1].cluster.bootstrap != "one"


@pytest.mark.parametrize("ahead", ["one", "two", "three"])
def test_the_least_counts_of_what_may_not_be_too_much(
    monkeypatch: pytest.MonkeyPatch, ahead: str
) -> None:
    admin = kafka(monkeypatch, **{"one": 3, "two": 3, "three": 3, ahead: 9})
    assert lowest(admin, lambda client: client.ends("t", [0])) == {0: 3}


def test_one_that_does_not_answer_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = kafka(monkeypatch, one=None, two=7, three=7)
    assert highest_ends(admin, "t", [0])[0] == {0: 7}


def test_half_of_them_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = kafka(monkeypatch, one=None, two=7)
    with pytest.raises(Retryable, match="1 of 2 brokers answer: one does not"):
        highest_ends(admin, "t", [0])


def test_the_only_one_is_asked_by_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = kafka(monkeypatch, any=7)
    assert highest_ends(admin, "t", [0]) == ({0: 7}, admin)
