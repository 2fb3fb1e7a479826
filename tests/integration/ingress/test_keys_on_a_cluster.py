"""The partition of a key has no leader: its writes wait or are refused, and all others go on."""

import uuid
from collections.abc import Iterator

import httpx2
import pytest
from confluent_kafka.admin import NewTopic

from integration.cluster import NODES, Cluster, three_brokers
from integration.conftest import StartService, Surroundings, make_surroundings
from integration.ingress.keyed import done, send, written
from integration.ingress.test_records import NDJSON, PARTITIONS, Known, make_pipeline
from integration.waiting import eventually
from waybill_ingress.core.keys import keyed_request
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.kafka.topics import create_missing

DELIVERY_TIMEOUT_S = 3
WITHIN_S = 120.0
(REQUESTS,) = (spec for spec in topic_specs() if spec.name == "requests")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with three_brokers(tmp_path_factory.mktemp("brokers")) as made:
        yield made


@pytest.fixture(scope="module")
def alone(cluster: Cluster) -> int:
    """The broker that has the first partition of the claims, and nobody else has it."""
    return cluster.follower()


@pytest.fixture(scope="module")
def surroundings(
    cluster: Cluster, alone: int, tmp_path_factory: pytest.TempPathFactory
) -> Surroundings:
    other = next(node for node in NODES if node != alone)
    copies = [[alone], *([[other]] * (REQUESTS.partitions - 1))]
    prefix = f"t{uuid.uuid4().hex[:10]}"
    config = REQUESTS.kafka_config()
    topic = NewTopic(
        f"{prefix}.requests", REQUESTS.partitions, replica_assignment=copies, config=config
    )
    create_missing(make_admin(cluster.kafka), [topic])
    nowhere = "redis://127.0.0.1:1/0"  # ingress has no use for it
    folder = tmp_path_factory.mktemp("keys")
    return make_surroundings(cluster.kafka, nowhere, folder, prefix=prefix, replication=3)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    settings = {
        "WAYBILL_INGRESS_DELIVERY_TIMEOUT_S": str(DELIVERY_TIMEOUT_S),
        "WAYBILL_INGRESS_KEY_PATIENCE_S": "2",
    }
    with httpx2.Client(base_url=start_service("ingress", **settings), timeout=120) as client:
        yield client


def key_in(known: Known, *, first: bool) -> str:
    """A key whose claims stand in the first partition, or in another one."""
    while True:
        key = str(uuid.uuid4())
        who = keyed_request(
            ANYONE, key, method="POST", path=known.path, query="", media_type="", digest=""
        ).who
        if (partition_of(who, REQUESTS.partitions) == 0) is first:
            return key


def is_led(around: Surroundings, known: Known) -> bool:
    """Its partitions have copies elsewhere, one of which becomes the leader."""
    try:
        return bool(make_admin(around.kafka).ends(known.topic, range(PARTITIONS)))
    except Retryable:
        return False


def test_keys_of_other_partitions_are_served_and_its_own_is_carried_out_once_later(
    cluster: Cluster, alone: int, surroundings: Surroundings, ingress: httpx2.Client
) -> None:
    admin = make_admin(surroundings.kafka)
    known = make_pipeline(surroundings, admin, ingress, replication=3)
    cut, other = key_in(known, first=True), key_in(known, first=False)
    first = f'{{"order_id": 1, "customer": "{cut}"}}'
    assert send(ingress, known, key_in(known, first=True)).status_code == httpx2.codes.OK

    cluster.kill(alone)
    eventually(lambda: is_led(surroundings, known), within_s=WITHIN_S)
    refused = send(ingress, known, cut, first)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    served = done(lambda: send(ingress, known, other, f'{{"customer": "{other}"}}'))
    assert served.status_code == httpx2.codes.OK
    plain = done(lambda: ingress.post(known.path, content='{"customer": "none"}', headers=NDJSON))
    assert plain.status_code == httpx2.codes.OK
    assert send(ingress, known, cut, first).status_code in (409, 503)
    assert written(surroundings, known, cut) == []

    cluster.start(alone)
    eventually(cluster.whole, within_s=WITHIN_S)
    answers = [done(lambda: send(ingress, known, cut, first)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert len(written(surroundings, known, cut)) == 1
    assert len(written(surroundings, known, other)) == 1
