"""`GET /v1/flow`: how much has come into each pipeline, and how much of it has arrived."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicDescription
from fastapi.testclient import TestClient

from clocks import NOW, FixedClock
from local_client import local_client
from unit.status.coroutines import in_a_loop
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import INNER, TOPIC, dead, record, slot
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import ContractError, Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import ConnectorState
from waybill_shared.http.app import create_app
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.process.health import Health
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.adapters.http.flow import flow_router
from waybill_status.adapters.kafka.input_ends import KafkaInputEnds
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.progress import Ends, ProgressReader

HERE = slot(enriched=(7, 3), copy=(7, 2), lake=(5, 3))


class FakeEnds:
    def __init__(self) -> None:
        self.found: dict[str, Ends | ContractError] = {"orders": {"orders": {0: 7, 1: 3}}}
        self.asked = 0
        self.away = False

    async def ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        self.asked += 1
        if self.away:
            raise Retryable("kafka is away")
        return [self.found[each.name] for each in records]


@pytest.fixture
def ends() -> FakeEnds:
    return FakeEnds()


@pytest.fixture
def owners() -> FakeOwners:
    return FakeOwners(record())


@pytest.fixture
def connectors() -> KnownConnectors:
    return KnownConnectors()


@pytest.fixture
def reader(
    store: FakeStore, ends: FakeEnds, owners: FakeOwners, connectors: KnownConnectors
) -> ProgressReader:
    pipelines = Pipelines(owners.directory, owners, store)
    return ProgressReader(pipelines, ends, store, FixedClock(), connectors)


@pytest.fixture
def asking(reader: ProgressReader) -> Iterator[TestClient]:
    with local_client(create_app("status", [flow_router(reader)], Health())) as client:
        yield client


def test_what_has_come_and_what_has_arrived(store: FakeStore, asking: TestClient) -> None:
    store.put(HERE, dead(2), dead(4), version=1)
    assert asking.get("/v1/flow").json() == {
        "at": "2026-11-18T11:06:40.000Z",
        "items": [
            {
                "name": "orders",
                "uid": "uid-1",
                "reason": None,
                "inputs": [
                    {
                        "name": "orders",
                        "written": 10,
                        "arrived": 8,
                        "partitions": [
                            {"partition": 0, "end": 7, "arrived": 5},
                            {"partition": 1, "end": 3, "arrived": 2},
                        ],
                    }
                ],
                "sinks": [
                    {"stage": "enrich", "name": "enriched", "behind": 0},
                    {"stage": "enrich", "name": "copy", "behind": 1},
                    {"stage": "load", "name": "lake", "behind": 2},
                ],
                "dead": 2,
            }
        ],
    }
    assert NOW == 1_795_000_000_000


def test_rows_of_files_that_died_are_counted_with_the_records(
    store: FakeStore, asking: TestClient, connectors: KnownConnectors
) -> None:
    store.put(HERE, dead(2), version=1)
    begun = ConnectorProgress(
        tenant=record().tenant,
        pipeline_uid=record().pipeline_uid,
        topic=TOPIC,
        connector="prices",
        url="https://files.example/prices.csv",
        at=NOW,
        state=ConnectorState.DONE,
        dead=3,
    )
    connectors.accept(begun)
    connectors.accept(replace(begun, pipeline_uid="uid-of-another", dead=50))
    assert asking.get("/v1/flow").json()["items"][0]["dead"] == 4


def test_one_that_cannot_be_told_of_hides_no_other(
    store: FakeStore, asking: TestClient, ends: FakeEnds, owners: FakeOwners
) -> None:
    for name in ("another", "created_anew", "silent"):
        owners.directory.accept(replace(record(), name=name, pipeline_uid=f"uid-{name}"))
    store.put(HERE, version=1)
    ends.found["another"] = {"orders": {0: 1, 1: 1}}
    ends.found["created_anew"] = Refusal(Slug.TOPIC_RECREATED, "topic orders.in is another one")
    ends.found["silent"] = Retryable("the broker did not say how far it goes")
    told = {each["name"]: each for each in asking.get("/v1/flow").json()["items"]}
    assert {name: each["reason"] for name, each in told.items()} == {
        "another": "slot_missing",
        "created_anew": "topic orders.in is another one",
        "orders": None,
        "silent": "the broker did not say how far it goes",
    }
    assert told["created_anew"]["inputs"] == told["silent"]["sinks"] == []


class FakeAdmin:
    """One topic is there, one is forbidden, one is gone, and one whose broker is silent."""

    def ask_identities(self, topics: Iterable[str]) -> "dict[str, Future[TopicDescription]]":
        return {name: self._described(name) for name in topics}

    def ends_of(self, topics: Iterable[TopicIdentity]) -> dict[str, dict[int, int]]:
        return {topic.name: {0: 7} for topic in topics if topic.name != "silent.in"}

    def _described(self, name: str) -> "Future[TopicDescription]":
        future: Future[TopicDescription] = Future()
        if name == "forbidden.in":
            future.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        elif name == "gone.in":
            future.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            part = SimpleNamespace(id=0)
            described = SimpleNamespace(topic_id=TOPIC, partitions=[part])
            future.set_result(described)  # type: ignore[arg-type]
        return future


def test_a_topic_that_cannot_be_asked_hides_no_other() -> None:
    def reading(topic: str) -> PipelineRecord:
        (source,) = record().root_inputs().values()
        stage = replace(record().stages[0], inputs=(replace(source, topic=topic),))
        return replace(record(), name=topic, stages=(stage,))

    names = ["there.in", "forbidden.in", "gone.in", "silent.in"]
    ends = KafkaInputEnds(FakeAdmin())  # type: ignore[arg-type]
    there, *others = asyncio.run(ends.ends([reading(name) for name in names]))
    assert there == {"orders": {0: 7}}
    assert [type(each) for each in others] == [Retryable, Refusal, Retryable]
    assert asyncio.run(ends.ends([])) == []


def test_the_topics_between_stages_are_asked_too() -> None:
    ends = KafkaInputEnds(FakeAdmin())  # type: ignore[arg-type]
    found = asyncio.run(ends.of_stages(record()))
    assert found[TOPIC] == {0: 7}
    assert isinstance(found[INNER], Refusal)
    assert str(found[INNER]) == "topic orders.enriched is not the one that orders reads"


@in_a_loop
async def test_however_many_ask_at_once_kafka_is_asked_once(
    store: FakeStore, reader: ProgressReader, ends: FakeEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(HERE, version=1)
    flows = await asyncio.gather(*(reader.all(ANYONE) for _ in range(20)))
    assert (ends.asked, len({id(flow) for flow in flows})) == (1, 1)
    monkeypatch.setattr("waybill_status.app.pipelines.progress.FRESH_S", -1.0)
    ends.found["orders"] = {"orders": {0: 9, 1: 3}}
    (orders,) = (await reader.all(ANYONE)).items
    assert (ends.asked, orders.inputs[0].written) == (2, 12)


def test_where_kafka_is_away_nothing_is_guessed(asking: TestClient, ends: FakeEnds) -> None:
    ends.away = True
    for _ in range(2):
        answer = asking.get("/v1/flow")
        assert (answer.status_code, answer.json()["detail"]) == (503, "kafka is away")
    assert ends.asked == 1, "who asks again at once is told the same"
