"""The topic of an input gets more partitions over HTTP, and tokens cover what is in them."""

import httpx2

from integration.conftest import Surroundings
from integration.ingress.test_records import PARTITIONS, Known, opened
from integration.waiting import eventually
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer

MORE = PARTITIONS + 2


def test_an_input_that_has_grown_has_tokens_for_its_new_partitions(
    surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client, known: Known
) -> None:
    path = f"/v1/pipelines/{known.record.name}/inputs/orders/grow"
    grown = ingress.post(path, json={"partitions": MORE}, params={"yes": "true"})
    assert grown.json() == {"topic": known.topic, "partitions": MORE, "added": 2}
    assert len(admin.identify([known.topic])[known.topic].partitions) == MORE

    producer = make_producer(surroundings.kafka)
    producer.produce(known.topic, b'{"order_id": 1}', partition=MORE - 1)
    assert producer.flush(30) == 0
    eventually(lambda: admin.ends(known.topic, [MORE - 1])[MORE - 1] == 1)
    body = {"pipeline": known.record.name, "input": "orders"}
    token = ingress.post("/v1/tokens", json=body).json()["token"]
    (part,) = opened(surroundings, token).parts
    assert {(span.partition, span.end) for span in part.spans if span.end} == {(MORE - 1, 1)}

    fewer = ingress.post(path, json={"partitions": PARTITIONS}, params={"yes": "true"})
    assert fewer.status_code == 422
    assert f"has {MORE} partitions" in fewer.text
