"""What HTTP, the schema, the token, a key and the form of a body cost where records come in."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from bench import load
from bench.contest import Contest, Turns
from bench.facts import publish, record, stage_of
from bench.peers import echo
from bench.surroundings import Surroundings, await_ready, peer, service
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.topics import create_missing

NDJSON = "application/x-ndjson"
PARTITIONS = 4
CONNECTIONS = 32
MANY = 100  # records in one request
MANY_REQUESTS = 400
A_THOUSAND = 1_000
A_THOUSAND_REQUESTS = 80
FEW = 8  # connections
ONE_REQUESTS = 4_000
TOPIC = "orders.in"
MANIFEST = f"""
version: 1
name: orders
inputs:
  - name: orders
    kafka: {{topic: {TOPIC}, partitions: {PARTITIONS}}}
    format: json
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), note STRING"
stages:
  - name: copy
    inputs: [orders]
    steps: [{{name: copied, sql: "SELECT * FROM orders"}}]
    sinks: [{{name: out, from: copied, kafka: {{topic: orders.out}}}}]
"""
Form = Callable[[range], bytes]
PATH = "/v1/pipelines/orders/inputs/orders/records"


def order(number: int) -> bytes:
    """About 200 bytes."""
    fields = {"order_id": number, "customer": "ada lovelace", "amount": 12.5, "note": "x" * 120}
    return json.dumps(fields).encode()


@contextmanager
def ready_ingress(around: Surroundings) -> Iterator[str]:
    """Ingress, with a pipeline that nobody runs."""
    admin = make_admin(around.kafka)
    create_missing(admin, [NewTopic(TOPIC, PARTITIONS, 1)])
    known: dict[str, TopicIdentity] = {}
    while TOPIC not in known:  # what was created a moment ago may not be reported yet
        known = admin.identify([TOPIC])
    stage = stage_of(TOPIC, known[TOPIC].topic_id)
    publish(
        around,
        record(str(uuid.uuid4()), name="orders", manifest=read_manifest(MANIFEST), stage=stage),
    )
    with service("ingress", around) as url:
        await_ready(url)
        yield url


@contextmanager
def many_against_producer(around: Surroundings) -> Iterator[Turns]:
    body = b"\n".join(order(number) for number in range(MANY))
    sent = load.request("POST", PATH, body, NDJSON)
    with ready_ingress(around) as url:

        def ours() -> float:
            return MANY * load.rate(
                url, lambda: sent, connections=CONNECTIONS, requests=MANY_REQUESTS
            )

        yield Turns(ours=ours, theirs=lambda: produced(around.kafka, MANY * MANY_REQUESTS))


@contextmanager
def one_against_echo(around: Surroundings) -> Iterator[Turns]:
    body = order(1)
    ask = load.request("POST", PATH, body, NDJSON)
    same = load.request("POST", "/", body, NDJSON)
    with ready_ingress(around) as ingress, peer(echo, around) as bare:
        await_ready(bare)
        yield Turns(
            ours=lambda: ones(ingress, lambda: ask),
            theirs=lambda: ones(bare, lambda: same),
        )


def ones(url: str, sent: load.Sent) -> float:
    return load.rate(url, sent, connections=CONNECTIONS, requests=ONE_REQUESTS)


@contextmanager
def with_key(around: Surroundings, *, records: int, requests: int) -> Iterator[Turns]:
    body = b"\n".join(order(number) for number in range(records))
    plain = load.request("POST", PATH, body, NDJSON)

    def keyed() -> bytes:
        return load.request("POST", PATH, body, NDJSON, f"Idempotency-Key: {uuid.uuid4()}")

    with ready_ingress(around) as url:

        def rate(sent: load.Sent) -> float:
            return load.rate(url, sent, connections=CONNECTIONS, requests=requests)

        yield Turns(ours=lambda: rate(keyed), theirs=lambda: rate(lambda: plain))


def produced(kafka: str, records: int) -> float:
    """Records per second of a plain producer that asks for each record's delivery report."""
    options = {"bootstrap.servers": kafka, "acks": "all", "enable.idempotence": True}
    producer = Producer({**options, "queue.buffering.max.messages": records})
    failed = count()

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            next(failed)

    body = order(1)
    began = time.perf_counter()
    for _ in range(records):
        producer.produce(TOPIC, value=body, on_delivery=on_delivery)
        producer.poll(0)
    left = producer.flush()
    seconds = time.perf_counter() - began
    assert not left
    assert next(failed) == 0
    return records / seconds


R4 = Contest(
    key="R4",
    what=f"records of 200 bytes, {MANY} in a request",
    ours="ingress, checked against the schema, with a token",
    theirs="a plain producer with delivery reports",
    unit="/s",
    target=0.45,
    begin=many_against_producer,
)
R5 = Contest(
    key="R5",
    what="requests of one record",
    ours="ingress",
    theirs="an echo by the same server",
    unit="/s",
    target=0.33,
    begin=one_against_echo,
)
R19 = Contest(
    key="R19",
    what=f"requests of {MANY} records with an Idempotency-Key",
    ours="ingress, each once",
    theirs="ingress, without a key",
    unit="/s",
    target=0.5,
    begin=partial(with_key, records=MANY, requests=MANY_REQUESTS),
)
