"""`GET …/offsets`: where each stage is, and what nobody knows now, with the reason."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from builders import make_sink
from clocks import FixedClock
from local_client import local_client
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import COPY, ENRICH, INNER, LOAD, TOPIC, offsets, record, slot, stages
from waybill_shared.contract.errors import ContractError, Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.vectors import ENDLESS, Vector
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health
from waybill_status.adapters.http.pipelines import offsets_router
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.offsets import OffsetsReader
from waybill_status.core.pipelines.offsets import TopicEnds

PATH = "/v1/pipelines/orders/offsets"


class FakeStageEnds:
    """The slot must be read before: what is written meanwhile is then shown as lag."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.found: dict[str, TopicEnds | ContractError] = {TOPIC: {0: 9, 1: 5}, INNER: {0: 4}}
        self.away = False
        self.silent = False

    async def of_stages(self, record: PipelineRecord) -> Mapping[str, TopicEnds | ContractError]:
        assert self._store.reads == 1
        if self.away:
            raise Retryable("kafka does not answer")
        if self.silent:
            await asyncio.Event().wait()
        return self.found


def at(**frontiers: Vector) -> Slot:
    """Frontiers by sink, of stages that began at 3 and 1."""
    keys = {"enriched": ENRICH, "copy": COPY, "lake": LOAD}
    sinks = {keys[name]: SinkState(frontier=frontier) for name, frontier in frontiers.items()}
    return replace(slot(bases=(3, 1)), sinks=sinks)


HERE = at(
    enriched=offsets(7, 5), copy=offsets(7, 2), lake=offsets(4, topic_id=INNER)
)  # the slowest of the first stage is `copy`


@pytest.fixture
def ends(store: FakeStore) -> FakeStageEnds:
    return FakeStageEnds(store)


@pytest.fixture
def owners() -> FakeOwners:
    return FakeOwners(replace(record(), stages=stages(3, 1)))


@pytest.fixture
def asking(store: FakeStore, ends: FakeStageEnds, owners: FakeOwners) -> Iterator[TestClient]:
    pipelines = Pipelines(owners.directory, owners, store)
    reader = OffsetsReader(pipelines, ends, store, FixedClock())
    with local_client(create_app("status", [offsets_router(reader)], Health())) as client:
        yield client


def ask(asking: TestClient) -> dict[str, Any]:
    answer = asking.get(PATH)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def rows(answer: dict[str, Any]) -> list[tuple[object, ...]]:
    """Topic, partition, base, position, end and lag of each; a frontier is where the stage is."""
    found = []
    for stage in answer["stages"]:
        for source in stage["inputs"]:
            for each in source["partitions"]:
                assert each["frontier"] == each["position"]
                numbers = (each[name] for name in ("partition", "base", "position", "end", "lag"))
                found.append((source["topic"], *numbers))
    return found


def test_a_rewound_stage_has_a_position_below_its_frontier(
    store: FakeStore, asking: TestClient
) -> None:
    sinks = {**HERE.sinks, COPY: replace(HERE.sinks[COPY], rewind=1, rewound=offsets(4))}
    store.put(replace(HERE, sinks=sinks), version=1)
    first, _ = ask(asking)["stages"][0]["inputs"][0]["partitions"]
    assert [first[name] for name in ("position", "frontier", "end", "lag")] == [4, 7, 9, 5]


def test_where_each_stage_is_and_where_its_topics_end(store: FakeStore, asking: TestClient) -> None:
    store.put(HERE, version=1)
    answer = ask(asking)
    assert answer["unknown"] == []
    assert answer["stages"][0] == {
        "name": "enrich",
        "inputs": [
            {
                "name": "orders",
                "topic": "orders.in",
                "topic_id": TOPIC,
                "partitions": [
                    {
                        "partition": 0,
                        "base": 3,
                        "position": 7,
                        "pending": None,
                        "frontier": 7,
                        "end": 9,
                        "lag": 2,
                        "sinks": [
                            {"name": "enriched", "frontier": 7},
                            {"name": "copy", "frontier": 7},
                        ],
                    },
                    {
                        "partition": 1,
                        "base": 1,
                        "position": 2,
                        "pending": None,
                        "frontier": 2,
                        "end": 5,
                        "lag": 3,
                        "sinks": [
                            {"name": "enriched", "frontier": 5},
                            {"name": "copy", "frontier": 2},
                        ],
                    },
                ],
            }
        ],
    }
    assert rows(answer)[2:] == [("orders.enriched", 0, 0, 4, 4, 0)]
    assert (answer["name"], answer["generation"]) == ("orders", 1)
    assert answer["at"] == "2026-11-18T11:06:40.000Z"


def test_before_the_first_batch_a_stage_is_where_it_began(
    store: FakeStore, asking: TestClient
) -> None:
    store.put(at(), version=1)
    assert rows(ask(asking)) == [
        ("orders.in", 0, 3, 3, 9, 6),
        ("orders.in", 1, 1, 1, 5, 4),
        ("orders.enriched", 0, 0, 0, 4, 4),
    ]


def test_a_sink_that_was_added_begins_later_than_its_stage(
    store: FakeStore, asking: TestClient, owners: FakeOwners
) -> None:
    store.put(HERE, version=1)
    enrich, load = stages(3, 1)
    later = replace(make_sink("later", since=1), bases=offsets(6, 4))
    changed = replace(enrich, sinks=(*enrich.sinks, later))
    owners.directory.accept(replace(record(), stages=(changed, load), generation=1))
    (first, second) = ask(asking)["stages"][0]["inputs"][0]["partitions"]
    assert (first["sinks"][2], first["position"]) == ({"name": "later", "frontier": 6}, 6)
    assert (second["sinks"][2], second["position"]) == ({"name": "later", "frontier": 4}, 2)


def test_a_partition_that_was_added_is_read_from_its_start(
    store: FakeStore, asking: TestClient, ends: FakeStageEnds
) -> None:
    store.put(HERE, version=1)
    ends.found[TOPIC] = {0: 9, 1: 5, 2: 6}
    assert rows(ask(asking))[2] == ("orders.in", 2, 0, 0, 6, 6)


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        ("away", "redis_away", "Redis does not answer"),
        ("empty", "slot_missing", "Redis holds nothing of the pipeline"),
        ("another", "slot_missing", "Redis holds nothing of the pipeline"),
        ("no definition", "no_definition", "the tracker has not read yet what"),
        ("old", "tracker_silent", "the tracker has confirmed nothing for 5 s"),
        ("behind", "generation_behind", "the tracker has not read the present generation yet"),
    ],
)
def test_positions_that_nobody_knows_are_no_numbers(
    store: FakeStore, asking: TestClient, owners: FakeOwners, fault: str, reason: str, detail: str
) -> None:
    content = replace(HERE, definition=None) if fault == "no definition" else HERE
    if fault != "empty":
        store.put(content, version=1, age_ms=6_000 if fault == "old" else 0)
    store.away = fault == "away"
    store.server = "another" if fault == "another" else store.server
    if fault == "behind":
        owners.directory.accept(replace(record(), stages=stages(3, 1), generation=2))
    answer = ask(asking)
    assert rows(answer) == [
        ("orders.in", 0, 3, None, 9, None),
        ("orders.in", 1, 1, None, 5, None),
        ("orders.enriched", 0, 0, None, 4, None),
    ]
    sinks = answer["stages"][0]["inputs"][0]["partitions"][0]["sinks"]
    assert sinks == [{"name": "enriched", "frontier": None}, {"name": "copy", "frontier": None}]
    (unknown,) = answer["unknown"]
    assert (unknown["what"], unknown["topic"], unknown["reason"]) == ("position", None, reason)
    assert unknown["detail"].startswith(detail)


def test_ends_that_kafka_does_not_say_are_no_numbers(
    store: FakeStore, asking: TestClient, ends: FakeStageEnds
) -> None:
    store.put(HERE, version=1)
    ends.away = True
    answer = ask(asking)
    assert rows(answer) == [
        ("orders.in", 0, 3, 7, None, None),
        ("orders.in", 1, 1, 2, None, None),
        ("orders.enriched", 0, 0, 4, None, None),
    ]
    assert answer["unknown"] == [
        {
            "what": "end",
            "topic": topic,
            "reason": "not_available_now",
            "detail": "kafka does not answer",
            "hint": None,
        }
        for topic in ("orders.in", "orders.enriched")
    ]


def test_a_kafka_that_is_silent_is_not_waited_for(
    store: FakeStore, asking: TestClient, ends: FakeStageEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_status.app.pipelines.offsets.ENDS_TIMEOUT_S", 0.01)
    store.put(HERE, version=1)
    ends.silent = True
    answer = ask(asking)
    assert [row[3:5] for row in rows(answer)] == [(7, None), (2, None), (4, None)]
    assert {each["detail"] for each in answer["unknown"]} == {"kafka did not answer within 0.01 s"}


def test_a_topic_that_was_created_anew_hides_no_other(
    store: FakeStore, asking: TestClient, ends: FakeStageEnds
) -> None:
    store.put(HERE, version=1)
    ends.found[TOPIC] = Refusal(Slug.TOPIC_RECREATED, "it is another one", hint="restart it")
    answer = ask(asking)
    assert [row[4] for row in rows(answer)] == [None, None, 4]
    assert answer["unknown"] == [
        {
            "what": "end",
            "topic": "orders.in",
            "reason": "topic_recreated",
            "detail": "it is another one",
            "hint": "restart it",
        }
    ]


def test_a_partition_that_the_broker_did_not_name_is_explained(
    store: FakeStore, asking: TestClient, ends: FakeStageEnds
) -> None:
    store.put(HERE, version=1)
    ends.found[TOPIC] = {0: 9}
    answer = ask(asking)
    assert rows(answer)[1] == ("orders.in", 1, 1, 2, None, None)
    (unknown,) = answer["unknown"]
    assert (unknown["what"], unknown["topic"]) == ("end", "orders.in")


def test_all_of_a_deleted_topic_is_passed_and_has_no_position(
    store: FakeStore, asking: TestClient
) -> None:
    """Also a partition that no report named."""
    store.put(at(enriched=offsets(ENDLESS), copy=offsets(7, 2)), version=1)
    answer = ask(asking)
    (first, second) = answer["stages"][0]["inputs"][0]["partitions"]
    assert [each["sinks"][0]["frontier"] for each in (first, second)] == [None, None]
    assert (first["position"], second["position"]) == (7, 2)
    (unknown,) = answer["unknown"]
    assert (unknown["what"], unknown["reason"]) == ("position", "topic_recreated")


def test_a_pipeline_that_does_not_exist_has_no_offsets(asking: TestClient) -> None:
    answer = asking.get("/v1/pipelines/order/offsets")
    assert (answer.status_code, answer.json()["known"]) == (404, ["orders"])
