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
