"""Ingress as a process over real Kafka: what a token says is what stands in the topic."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import httpx2
import pytest
from confluent_kafka.admin import NewTopic

from builders import applied
from integration.conftest import StartService, Surroundings
from integration.waiting import eventually
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.events import (
    InputDefinition,
    PipelineRecord,
    StageDefinition,
    pipeline_key,
)
from waybill_shared.contract.tokens import Token, open_token, pipeline_id
from waybill_shared.contract.vectors import Span
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end
from waybill_shared.kafka.topics import create_missing
from waybill_shared.process.clock import SystemClock

MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {topic}}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
    key: customer
stages:
  - {{name: copy, inputs: [orders], sinks: [{{name: out, kafka: {{topic: {topic}.out}}}}]}}
"""
NDJSON = {"Content-Type": "application/x-ndjson"}
PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A pipeline that ingress knows, and its input topic."""

    record: PipelineRecord
    topic: str
    topic_id: str

    @property
    def path(self) -> str:
        return f"/v1/pipelines/{self.record.name}/inputs/orders/records"


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    url = start_service("ingress", WAYBILL_INGRESS_BODY_BYTES_MAX="200000")
    with httpx2.Client(base_url=url, timeout=120) as client:
        yield client


@pytest.fixture
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress)


def make_pipeline(
    surroundings: Surroundings,
    admin: KafkaAdmin,
    ingress: httpx2.Client,
    *,
    base: int = 0,
    partitions: int = PARTITIONS,
    replication: int = 1,
    config: dict[str, str] | None = None,
    more: str = "",
) -> Known:
    """A pipeline as the stage runner would have written it down. `more`: lines of its input."""
    name = f"p{uuid.uuid4().hex[:8]}"
    topic = f"{surroundings.prefix}.{name}.in"
    create_missing(admin, [NewTopic(topic, partitions, replication, config=config or {})])
    eventually(lambda: admin.identify([topic]))
    topic_id = admin.identify([topic])[topic].topic_id
    bases = {(topic_id, p): base for p in range(partitions)}
    source = InputDefinition(name="orders", topic=topic, topic_id=topic_id, root=True, bases=bases)
    record = PipelineRecord(
        commanded_at=0,
        life=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid=str(uuid.uuid4()),
        name=name,
        generation=3,
        desired="running",
        manifest=applied(MANIFEST.format(name=name, topic=topic)),
        stages=(StageDefinition(name="copy", since=1, inputs=(source,), sinks=()),),
        created_at=1,
        updated_at=1,
    )
    write_record(surroundings, record)
    question = {"pipeline": name, "input": "orders"}
    eventually(lambda: ingress.post("/v1/tokens", json=question).status_code == httpx2.codes.OK)
    return Known(record=record, topic=topic, topic_id=topic_id)


def write_record(surroundings: Surroundings, record: PipelineRecord) -> None:
    producer = make_producer(surroundings.kafka)
    key = pipeline_key(record.tenant, record.pipeline_uid)
    produce_and_wait(producer, f"{surroundings.prefix}.pipelines", key, encode(record))


def opened(surroundings: Surroundings, token: str) -> Token:
    now_ms = SystemClock().now_ms()
    return open_token(token, surroundings.ring, tenant=DEFAULT_TENANT, now_ms=now_ms)


def stored(
    surroundings: Surroundings, topic: str
) -> dict[tuple[int | None, int | None], tuple[bytes | None, bytes | None]]:
    """Key and value of each record, by partition and offset."""
    messages = read_to_end(surroundings.kafka, topic, range(PARTITIONS))
    return {(m.partition(), m.offset()): (m.key(), m.value()) for m in messages}


def test_a_token_covers_exactly_the_records_of_its_request(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    strangers = '{"customer": "ada"}\n' * 5
    ingress.post(known.path, content=strangers, headers=NDJSON).raise_for_status()
    rows = [f'{{"order_id": {n},  "customer": "c{n}"}}' for n in range(20)]
    answer = ingress.post(known.path, content="\n".join(rows), headers=NDJSON).json()
    ingress.post(known.path, content=strangers, headers=NDJSON).raise_for_status()

    assert answer["accepted"] == 20
    assert answer["rejected"] == []
    token = opened(surroundings, answer["token"])
    (part,) = token.parts
    assert part.generation == 3
    uid = known.record.pipeline_uid
    assert part.pipeline_id == pipeline_id(DEFAULT_TENANT, uid)
    assert {span.topic_id for span in part.spans} == {known.topic_id}
    in_kafka = stored(surroundings, known.topic)
    mine = {
        in_kafka[span.partition, offset]
        for span in part.spans
        for offset in range(span.start or 0, span.end)
    }
    assert mine == {(json.loads(row)["customer"].encode(), row.encode()) for row in rows}
    assert all(span.start is not None for span in part.spans)


def test_bad_rows_are_named_and_the_good_ones_kept(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    body = '[{"order_id": 1, "amount": 1.50}, {"order_id": "x"}, {"order_id": 3, "order_id": 4}]'
    headers = {"Content-Type": "application/json"}
    answer = ingress.post(known.path, content=body, headers=headers).json()
    assert answer["accepted"] == 1
    assert [row["index"] for row in answer["rejected"]] == [1, 2]
    assert "order_id" in answer["rejected"][0]["reason"]
    ((key, value),) = stored(surroundings, known.topic).values()
    assert key is None
    assert value == b'{"order_id": 1, "amount": 1.50}'


def test_nothing_is_produced_when_all_rows_are_bad(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    answer = ingress.post(known.path, content='{"order_id": "x"}', headers=NDJSON)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:waybill:problem:records_rejected"
    assert [row["index"] for row in answer.json()["rejected"]] == [0]
    assert stored(surroundings, known.topic) == {}


def test_a_body_above_the_cap_is_refused_without_a_content_length(
    ingress: httpx2.Client, known: Known
) -> None:
    pieces = (b'{"order_id": 1}\n' * 1000 for _ in range(100))
    answer = ingress.post(known.path, content=pieces, headers=NDJSON)
    assert answer.status_code == 413
    assert answer.json()["bytes_max"] == 200_000


def test_a_recreated_topic_gets_no_token(
    surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client, known: Known
) -> None:
    ingress.post(known.path, content='{"order_id": 1}', headers=NDJSON).raise_for_status()
    admin.client.delete_topics([known.topic])[known.topic].result()
    eventually(lambda: not admin.identify([known.topic]))
    eventually(lambda: create_missing(admin, [NewTopic(known.topic, PARTITIONS, 1)]))

    answer = ingress.post(known.path, content='{"order_id": 2}', headers=NDJSON)
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:waybill:problem:topic_recreated"
    assert "token" not in answer.json()
    again = ingress.post(known.path, content='{"order_id": 2}', headers=NDJSON)
    assert again.status_code == 503
    assert len(stored(surroundings, known.topic)) <= 1, "produced into a topic known to be another"


def test_an_input_without_bases_is_not_ready(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    (stage,) = known.record.stages
    source = replace(stage.inputs[0], bases={})
    record = replace(known.record, stages=(replace(stage, inputs=(source,)),), generation=4)
    write_record(surroundings, record)

    def answered() -> bool:
        answer = ingress.post(known.path, content='{"order_id": 1}', headers=NDJSON)
        return (
            answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE
            and answer.json()["type"] == "urn:waybill:problem:input_not_ready"
            and "retry-after" in answer.headers
        )

    eventually(answered)


def test_tokens_for_positions_and_for_an_input(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    producer = make_producer(surroundings.kafka)
    message = produce_and_wait(producer, known.topic, "ada", b'{"customer": "ada"}')
    position = {
        "topic": known.topic,
        "topic_id": known.topic_id,
        "partition": message.partition(),
        "offset": message.offset(),
    }
    body = {"pipeline": known.record.name, "positions": [position]}
    answer = ingress.post("/v1/tokens", json=body).json()
    assert answer["pipeline"] == known.record.name
    token = opened(surroundings, answer["token"])
    assert not token.identity_assumed
    wanted = Span(topic_id=known.topic_id, partition=message.partition() or 0, start=0, end=1)
    assert [part.spans for part in token.parts] == [(wanted,)]

    all_of_it = ingress.post(
        "/v1/tokens", json={"pipeline": known.record.name, "input": "orders"}
    ).json()
    (part,) = opened(surroundings, all_of_it["token"]).parts
    assert part.spans == (wanted,)
    assert not part.counted


@pytest.mark.parametrize(
    ("change", "status", "slug"),
    [
        ({"offset": 7}, 400, "position_beyond_end"),
        ({"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}, 400, "topic_id_unknown"),
        ({"partition": 9}, 400, "partition_unknown"),
        ({"topic": "strange"}, 400, "topic_not_an_input"),
        ({"offset": -1}, 422, "invalid"),
    ],
)
def test_a_position_that_is_not_there_gets_no_token(
    ingress: httpx2.Client, known: Known, change: dict[str, object], status: int, slug: str
) -> None:
    position = {"topic": known.topic, "topic_id": known.topic_id, "partition": 0, "offset": 0}
    body = {"pipeline": known.record.name, "positions": [{**position, **change}]}
    answer = ingress.post("/v1/tokens", json=body)
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:waybill:problem:{slug}")


def test_a_position_is_waited_for(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    """A new leader may not know yet what the old one has acknowledged."""
    producer = make_producer(surroundings.kafka, **{"linger.ms": 500})
    producer.produce(known.topic, b"{}", partition=1)
    position = {"topic": known.topic, "partition": 1, "start": 0, "end": 1}
    body = {"pipeline": known.record.name, "positions": [position]}
    answer = ingress.post("/v1/tokens", json=body)
    producer.flush(10)
    assert answer.status_code == httpx2.codes.OK, answer.text
    assert opened(surroundings, answer.json()["token"]).identity_assumed


def test_a_compacted_topic_takes_no_record_without_a_key_and_says_so_at_once(
    surroundings: Surroundings, ingress: httpx2.Client, admin: KafkaAdmin
) -> None:
    config = {"cleanup.policy": "compact"}
    known = make_pipeline(surroundings, admin, ingress, config=config, partitions=1)
    answer = ingress.post(known.path, content='{"order_id": 1}', headers=NDJSON)
    assert answer.status_code == httpx2.codes.UNPROCESSABLE_CONTENT
    assert answer.json()["type"].endswith("records_refused_by_kafka")
    assert "`key` of the input" in answer.json()["hint"]
    assert answer.json()["rejected"][0]["index"] == 0
    good = ingress.post(known.path, content='{"order_id": 1, "customer": "a"}', headers=NDJSON)
    assert good.json()["accepted"] == 1
