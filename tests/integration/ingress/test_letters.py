"""Single dead letters, as a broker has them."""

import asyncio
from collections.abc import Sequence

import pytest
from confluent_kafka import TopicPartition

from integration.conftest import Surroundings
from integration.ingress.letters import WAIT_S, Grave
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.dead_letter_reading import NEAR, KafkaDeadLetterLookup
from waybill_ingress.core.dead_letters import ExpiredDeadLetter, Found, FoundDeadLetter
from waybill_shared.contract.dead_letters import LetterId, split_headers
from waybill_shared.contract.errors import Refusal
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer

LARGE = 10_000_000


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture
def grave(surroundings: Surroundings, admin: KafkaAdmin) -> Grave:
    return Grave(surroundings, admin)


class Reading:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._letters = KafkaDeadLetterLookup(admin.cluster, admin)

    def __call__(self, places: Sequence[LetterId], bytes_max: int = LARGE) -> Found:
        return asyncio.run(self._letters.read(places, bytes_max=bytes_max))


@pytest.fixture
def read(admin: KafkaAdmin) -> Reading:
    return Reading(admin)


def test_only_what_is_asked_for_comes_wherever_it_lies(grave: Grave, read: Reading) -> None:
    """Near to another, far from it, in each partition."""
    places = [grave.bury(n, key=b"%d" % n, value=b"%d" % n) for n in range(4 * NEAR)]
    wanted = [places[n] for n in (0, 1, 7, 2 * NEAR, 4 * NEAR - 2, 4 * NEAR - 1)]
    found = read(wanted)
    assert {p: f.value for p, f in found.items() if isinstance(f, FoundDeadLetter)} == {
        place: b"%d" % place.source for place in wanted
    }


@pytest.mark.parametrize("key", [None, b"", b"\x00\xff"])
@pytest.mark.parametrize("value", [None, b"", b"\xff{"])
def test_it_comes_as_it_is(
    grave: Grave, read: Reading, key: bytes | None, value: bytes | None
) -> None:
    own = (("a", b"1"), ("b", None), ("a", b""), ("a", b"1"))
    place = grave.bury(3, key=key, value=value, own=own)
    found = read([place])[place]
    assert isinstance(found, FoundDeadLetter)
    letter = split_headers(found.headers)
    assert letter is not None
    assert (found.key, found.value, letter.own) == (key, value, own)


def test_where_no_record_stands_there_is_none(
    surroundings: Surroundings, grave: Grave, read: Reading
) -> None:
    """Behind the end, in a partition or topic that is not there, aborted, and a marker."""
    producer = make_producer(surroundings.kafka, **{"transactional.id": grave.topic})
    claim_transactions(producer, WAIT_S)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(grave.dead, b"x", partition=0)
        producer.flush(WAIT_S)
        end(WAIT_S)
    places = [
        LetterId(topic=topic, partition=partition, offset=offset, source=0)
        for topic, partition, offset in [
            *((grave.dead, 0, offset) for offset in range(9)),
            (grave.dead, 1, 0),
            (grave.dead, 7, 0),
            ("nowhere", 0, 0),
        ]
    ]
    found = read(places)
    assert [(place.partition, place.offset) for place in found] == [(0, 2)]


def test_what_is_in_an_open_transaction_is_not_waited_for(
    surroundings: Surroundings, grave: Grave, read: Reading
) -> None:
    producer = make_producer(surroundings.kafka, **{"transactional.id": grave.topic})
    claim_transactions(producer, WAIT_S)
    producer.begin_transaction()
    producer.produce(grave.dead, b"x", partition=0)
    producer.flush(WAIT_S)
    place = LetterId(topic=grave.dead, partition=0, offset=0, source=0)
    assert read([place]) == {}
    producer.abort_transaction(WAIT_S)


def test_what_retention_took_is_gone_and_says_since_when_there_are_records(
    admin: KafkaAdmin, grave: Grave, read: Reading
) -> None:
    places = [grave.bury(n, key=b"same") for n in range(3)]
    at = places[0].partition
    delete_before(admin, grave.dead, at, 2)
    found = read(places)
    gone = found[places[0]]
    assert isinstance(gone, ExpiredDeadLetter)
    assert gone == found[places[1]]
    assert gone.since is not None
    assert isinstance(found[places[2]], FoundDeadLetter)
    delete_before(admin, grave.dead, at, 3)
    assert read(places[2:]) == {places[2]: ExpiredDeadLetter(since=None)}


def test_too_many_bytes_are_refused(grave: Grave, read: Reading) -> None:
    places = [grave.bury(n, value=b"x" * 600) for n in range(2)]
    assert len(read(places, 1_200)) == 2
    with pytest.raises(Refusal, match="more than 1000 bytes"):
        read(places, 1_000)


def delete_before(admin: KafkaAdmin, topic: str, partition: int, offset: int) -> None:
    place = TopicPartition(topic, partition, offset)
    admin.client.delete_records([place])[place].result()
    eventually(lambda: admin.starts(topic, [partition]) == {partition: offset}, within_s=WAIT_S)
