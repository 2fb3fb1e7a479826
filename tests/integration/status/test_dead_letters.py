"""Dead letters of a pipeline, as status finds them on a broker."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from confluent_kafka import TopicPartition

from integration.conftest import StartService, Surroundings
from integration.ingress.letters import WAIT_S, Grave, create
from integration.waiting import eventually
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer
from waybill_shared.process.clock import SystemClock

JsonObject = dict[str, Any]
VIOLATED = {
    named.REASON: "violated",
    named.STAGE: "enrich",
    named.SINK: "enrich/lake@1",
    named.RULE: "positive",
    named.MESSAGE: "amount > 0 is not true",
}


def now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def status(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("status"), timeout=120) as client:
        yield client


class Shown:
    """What status says of a pipeline's dead letters."""

    def __init__(self, client: httpx2.Client, grave: Grave) -> None:
        self._client = client
        self._path = f"/v1/pipelines/{grave.record.name}/dead-letters"
        grave.tell()
        eventually(lambda: client.get(self._path).status_code == 200, within_s=WAIT_S)

    def page(self, **params: str | int) -> JsonObject:
        answer = self._client.get(self._path, params=params)
        assert answer.status_code == 200, answer.text
        found: JsonObject = answer.json()
        return found

    def ids(self, **params: str | int) -> list[str]:
        return [each["id"] for each in self.page(**params)["items"]]

    def one(self, id: object) -> httpx2.Response:
        return self._client.get(f"{self._path}/{id}")


@pytest.fixture
def grave(surroundings: Surroundings, admin: KafkaAdmin) -> Grave:
    return Grave(surroundings, admin)


@pytest.fixture
def shown(status: httpx2.Client, grave: Grave) -> Shown:
    return Shown(status, grave)


def test_a_pipeline_of_which_nothing_died_has_none(grave: Grave, shown: Shown) -> None:
    assert shown.page() == {"items": [], "next_cursor": None}


def test_the_newest_come_first_over_all_partitions_page_by_page(grave: Grave, shown: Shown) -> None:
    places = [grave.bury(n, key=b"%d" % n) for n in range(25)]
    assert {place.partition for place in places} == {0, 1}
    pages = [shown.page(limit=10)]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(shown.page(limit=10, cursor=cursor))
    told = [each for page in pages for each in page["items"]]
    assert [len(page["items"]) for page in pages] == [10, 10, 5]
    assert sorted(each["id"] for each in told) == sorted(map(str, places))
    times = [each["at"] for each in told]
    assert times == sorted(times, reverse=True)


def test_one_is_told_in_the_list_and_whole(grave: Grave, shown: Shown) -> None:
    value, own = b'{"a": "' + b"x" * 5_000 + b'"}', (("trace", b"1"), ("raw", b"\xff"))
    place = grave.bury(41, key=b"\xff\x00", value=value, own=own, partition=1, more=VIOLATED)
    (listed,) = shown.page()["items"]
    source = {"topic": grave.topic, "partition": 1, "offset": 41}
    common = {
        "id": str(place), "topic": grave.dead, "partition": place.partition, "offset": 0,
        "at": listed["at"], "stage": "enrich", "sink": "lake", "reason": "violated",
        "rule": "positive", "message": "amount > 0 is not true", "source": source,
        "replayed_as": None, "not_replayable": None,
    }  # fmt: skip
    age = now() - datetime.fromisoformat(listed["at"])
    assert timedelta(minutes=-1) < age < timedelta(minutes=5)
    assert listed == {
        **common, "key": "\ufffd\x00", "value": value.decode()[:1_000], "truncated": True
    }  # fmt: skip
    whole = shown.one(place).json()
    assert whole == {
        **common, "lacking": ["lake"],
        "key": None, "key_base64": "/wA=", "value": value.decode(), "value_base64": None,
        "headers": [
            {"name": "trace", "value": "1", "value_base64": None},
            {"name": "raw", "value": None, "value_base64": "/w=="},
        ],
        "error": "x", "batch": "x",
    }  # fmt: skip


def test_filters_and_time_leave_others_out(grave: Grave, shown: Shown) -> None:
    first = grave.bury(1, key=b"a", more=VIOLATED)
    (before,) = shown.page()["items"]
    since = datetime.fromisoformat(before["at"]) + timedelta(milliseconds=1)
    eventually(lambda: now() > since, within_s=WAIT_S)
    second = grave.bury(2, key=b"a", more={**VIOLATED, named.REASON: "failed"})
    third = grave.bury(3, key=b"a", more={**VIOLATED, named.STAGE: "load"})
    assert shown.ids() == [str(third), str(second), str(first)]
    assert shown.ids(reason="violated") == [str(third), str(first)]
    assert shown.ids(stage="load", reason="violated") == [str(third)]
    assert shown.ids(since=since.isoformat()) == [str(third), str(second)]
    assert shown.ids(since="2099-01-01T00:00:00Z") == []


def test_others_records_in_the_same_topic_are_not_the_pipelines(grave: Grave, shown: Shown) -> None:
    foreign = grave.bury(1, key=b"a", more={named.UID: "another"})
    mine = grave.bury(2, key=b"a")
    assert shown.ids() == [str(mine)]
    assert shown.one(foreign).status_code == 404


def test_only_what_is_committed_is_told_and_nothing_is_waited_for(
    surroundings: Surroundings, grave: Grave, shown: Shown
) -> None:
    mine = grave.bury(1, key=b"a")
    producer = make_producer(surroundings.kafka, **{"transactional.id": grave.topic})
    claim_transactions(producer, WAIT_S)
    for finish in (producer.abort_transaction, lambda _: None):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(grave.dead, b"x", partition=partition)
        producer.flush(WAIT_S)
        assert shown.ids() == [str(mine)]
        finish(WAIT_S)
    assert shown.ids() == [str(mine)]
    producer.abort_transaction(WAIT_S)


def test_what_retention_took_is_gone(admin: KafkaAdmin, grave: Grave, shown: Shown) -> None:
    places = [grave.bury(n, key=b"a") for n in range(3)]
    at = places[0].partition
    place = TopicPartition(grave.dead, at, 2)
    admin.client.delete_records([place])[place].result()
    eventually(lambda: admin.starts(grave.dead, [at]) == {at: 2}, within_s=WAIT_S)
    assert shown.ids() == [str(places[2])]
    (left,) = shown.page()["items"]
    answer = shown.one(places[0])
    assert answer.status_code == 410
    assert answer.json()["detail"].endswith(f"it has records since {left['at']}")


def test_an_id_is_of_one_record_though_its_topic_was_created_again(
    admin: KafkaAdmin, grave: Grave, shown: Shown
) -> None:
    before = grave.bury(1, key=b"a")
    admin.client.delete_topics([grave.dead])[grave.dead].result()
    eventually(lambda: not admin.identify([grave.dead]), within_s=WAIT_S)
    assert shown.page() == {"items": [], "next_cursor": None}
    assert shown.one(before).status_code == 404
    create(admin, grave.dead)
    after = grave.bury(2, key=b"a")
    assert (before.partition, before.offset) == (after.partition, after.offset)
    assert shown.one(before).status_code == 404
    assert shown.one(after).json()["source"]["offset"] == 2


def test_what_never_was_is_not_found(grave: Grave, shown: Shown) -> None:
    grave.bury(1)
    for topic, partition, offset in ((grave.dead, 0, 99), (grave.dead, 9, 0), ("nowhere", 0, 0)):
        other = LetterId(topic=topic, partition=partition, offset=offset, source=1)
        assert shown.one(other).status_code == 404
