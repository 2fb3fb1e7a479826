"""The journal of dead records on a real broker: all of an entry is there, or nothing."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import cast

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from builders import make_fence
from integration.conftest import Surroundings
from integration.waiting import eventually
from waybill_shared.contract import codec
from waybill_shared.contract.dead_letter_facts import DeadLetters, DeadPositions
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact, Fence, pipeline_key
from waybill_shared.contract.slots import key_of_letters
from waybill_shared.contract.words import DeadReason
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end
from waybill_shared.kafka.topics import create_missing
from waybill_spark.kafka import dead_letter_topics
from waybill_spark.kafka.dead_letter_journal import LETTERS_MAX, JournalOf, KafkaDeadJournal
from waybill_spark.kafka.fence_topic import moving
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.dead_letters.records import DeadCause, DeadLetterRecord, RawRecord
from waybill_spark.tracking.sink import SinkSuperseded

PARTITIONS = 3
WAIT_S = 120.0
OWN = (("trace", b"1"), ("trace", None), ("waybill.reason", b"not ours"))


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture
def source(admin: KafkaAdmin) -> str:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    create_missing(admin, [NewTopic(name, PARTITIONS, 1)])
    eventually(lambda: name in admin.identify([name]))
    dead_letter_topics.make_absent(admin, {name: f"{name}.dlq"}, 1)
    eventually(lambda: len(partitions(admin, f"{name}.dlq")) == PARTITIONS)
    return name


@pytest.fixture
def fences(surroundings: Surroundings, admin: KafkaAdmin) -> Fences:
    return Fences(admin, surroundings.prefix)


def partitions(admin: KafkaAdmin, topic: str) -> tuple[int, ...]:
    found = admin.identify([topic]).get(topic)
    return () if found is None else found.partitions


def opened(source: str, fences: Fences, *, stage: str = "load", key: str = "") -> KafkaDeadJournal:
    journal = KafkaDeadJournal(
        JournalOf(
            pipeline="orders",
            stage=stage,
            since=1,
            key=key,
            fence_key=f"c/p/default/{source}/load@1/!dead",
            facts_key=pipeline_key("default", source),
            topics={source: f"{source}.dlq"},
            topic_ids={source: f"id of {source}"},
        ),
        fences,
    )
    journal.claim()
    return journal


def dead(
    source: str, offset: int, value: bytes | None = b"{", sink: str | None = None
) -> DeadLetterRecord:
    death = DeadCause(reason=DeadReason.MALFORMED, message="no JSON", sink=sink, error="ValueError")
    record = RawRecord(
        topic=source, partition=1, offset=offset, key=b"\x00k", value=value, headers=OWN
    )
    return DeadLetterRecord(record=record, cause=death)


def entry(source: str, *, sequence: int = 1, offsets: tuple[int, ...] = (7,)) -> Fence:
    positions = DeadPositions(topic_id=f"id of {source}", partition=1, offsets=offsets)
    fence = make_fence(sequence=sequence)
    return replace(fence, stage="load", sink="!dead", pipeline_uid=source, dead=(positions,))


def lying(fences: Fences, source: str) -> list[Message]:
    admin = fences.admin
    topic = f"{source}.dlq"
    return list(read_to_end(admin.cluster, topic, partitions(admin, topic)))


def told(fences: Fences, source: str) -> list[DeadLetters]:
    return [*_told(fences, source)]


def _told(fences: Fences, source: str) -> Iterator[DeadLetters]:
    topic = f"{fences.prefix}.commits"
    for message in read_to_end(fences.admin.cluster, topic, partitions(fences.admin, topic)):
        fact = codec.decode(Fact, message.value() or b"")
        if fact.pipeline_uid == source and isinstance(fact.body, DeadLetters):
            yield fact.body


def test_a_record_lies_there_as_it_was_with_headers_that_say_why(
    source: str, fences: Fences
) -> None:
    opened(source, fences).write([dead(source, 7, sink="load/lake@1")], entry(source))
    (message,) = lying(fences, source)
    assert (message.key(), message.value()) == (b"\x00k", b"{")
    headers = cast(list[tuple[str, bytes | None]], message.headers())
    assert headers[: len(OWN)] == list(OWN)
    said = {name: value.decode() for name, value in headers[len(OWN) :] if value is not None}
    assert said["__connect.errors.topic"] == source
    assert (said["__connect.errors.partition"], said["__connect.errors.offset"]) == ("1", "7")
    assert said["__connect.errors.connector.name"] == said["waybill.pipeline"] == "orders"
    assert said["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert said["__connect.errors.exception.class.name"] == "ValueError"
    assert said["__connect.errors.exception.message"] == "no JSON"
    assert (said["waybill.reason"], said["waybill.sink"]) == ("malformed", "load/lake@1")
    assert said["waybill.topic_id"] == f"id of {source}"
    assert "waybill.rule" not in said


def test_a_record_without_a_value_lies_there_without_one(source: str, fences: Fences) -> None:
    opened(source, fences).write([dead(source, 7, value=None)], entry(source))
    (message,) = lying(fences, source)
    assert message.value() is None


def test_a_record_that_fits_only_when_it_is_compressed_fits_there_too(
    source: str, fences: Fences
) -> None:
    value = b"x" * 14_000_000
    opened(source, fences).write([dead(source, 7, value=value)], entry(source))
    (message,) = lying(fences, source)
    assert message.value() == value


def test_the_fact_says_where_each_record_lies(source: str, fences: Fences) -> None:
    opened(source, fences).write([dead(source, 7), dead(source, 9)], entry(source))
    (fact,) = told(fences, source)
    assert (fact.stage, fact.since, fact.sequence) == ("load", 1, 1)
    places = {(message.partition(), message.offset()) for message in lying(fences, source)}
    assert {(each.dead_partition, each.dead_offset) for each in fact.letters} == places
    assert [(each.topic, each.partition, each.offset) for each in fact.letters] == [
        (source, 1, 7),
        (source, 1, 9),
    ]


def test_the_entry_is_read_by_the_next_driver(source: str, fences: Fences) -> None:
    written = opened(source, fences).write([dead(source, 7)], entry(source))
    assert opened(source, Fences(fences.admin, fences.prefix)).last() == written


def test_many_letters_are_several_facts_with_numbers_of_their_own(
    source: str, fences: Fences
) -> None:
    many = [dead(source, offset) for offset in range(2 * LETTERS_MAX + 1)]
    journal = opened(source, fences)
    written = journal.write(many, entry(source, sequence=4))
    assert written.batch.sequence == 6
    assert [fact.sequence for fact in told(fences, source)] == [4, 5, 6]
    assert sum(len(fact.letters) for fact in told(fences, source)) == len(many)


def test_a_journal_that_was_claimed_again_writes_nothing(source: str, fences: Fences) -> None:
    paused = opened(source, fences)
    opened(source, fences)
    with pytest.raises(SinkSuperseded, match="journal of stage load"):
        paused.write([dead(source, 7)], entry(source))
    assert (lying(fences, source), told(fences, source)) == ([], [])


def test_of_an_entry_that_was_not_committed_nothing_is_seen(source: str, fences: Fences) -> None:
    """Its driver is killed in the middle; the next claim ends what it left open."""
    killed = opened(source, fences)
    producer = killed._transactions._producer
    assert producer is not None
    producer.begin()
    killed._produce(producer.client, [dead(source, 7)], entry(source))
    next_one = opened(source, fences)
    assert next_one.last() is None
    assert (lying(fences, source), told(fences, source)) == ([], [])


def test_a_topic_that_is_there_is_left_as_it_is(source: str, admin: KafkaAdmin) -> None:
    dead_letter_topics.make_absent(admin, {source: f"{source}.dlq"}, 1)
    producer = make_producer(admin.cluster)
    produce_and_wait(producer, f"{source}.dlq", "k", b"v")
    dead_letter_topics.make_absent(admin, {source: f"{source}.dlq"}, 1)
    assert admin.ends(f"{source}.dlq", range(PARTITIONS)) != dict.fromkeys(range(PARTITIONS), 0)


def test_a_stage_with_another_name_knows_what_died_under_the_first(
    source: str, fences: Fences
) -> None:
    opened(source, fences).write([dead(source, 7)], entry(source))
    renamed = opened(source, fences, stage="fill", key="load@1")
    found = renamed.last()
    assert found is not None
    renamed.write([dead(source, 9)], entry(source, sequence=2, offsets=(9,)))
    past = renamed.past({(f"id of {source}", 1): 0})
    assert [each.offsets for each in past] == [(7,), (9,)]
    assert {key_of_letters(each) for each in told(fences, source)} == {"load@1"}
    another = opened(source, fences, stage="load", key="other@1")
    assert another.past({(f"id of {source}", 1): 0}) == ()


def test_one_that_is_paused_in_its_transaction_holds_others_back_for_seconds_only(
    source: str, fences: Fences, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers give up after 30 s of silence, and hear of what stands behind it before that."""
    paused, go_on = Event(), Event()

    def pause(edge: str) -> None:
        paused.set()
        go_on.wait(WAIT_S)

    monkeypatch.setattr(moving, "reach", pause)
    journal = opened(source, fences)
    behind = DeadLetters(stage="another", since=1, sequence=1, letters=())
    fact = Fact(tenant="default", pipeline_uid=source, generation=1, at=1, body=behind)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(journal.write, [dead(source, 7)], entry(source))
        assert paused.wait(WAIT_S)
        key, topic = pipeline_key("default", source), f"{fences.prefix}.commits"
        produce_and_wait(make_producer(fences.admin.cluster), topic, key, codec.encode(fact))
        assert told(fences, source) == [behind]
        go_on.set()
        with pytest.raises((Retryable, SinkSuperseded)):
            writing.result(WAIT_S)
    assert told(fences, source) == [behind]
    assert lying(fences, source) == []
