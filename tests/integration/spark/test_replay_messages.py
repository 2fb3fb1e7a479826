"""What a driver reads of replays from a real broker: messages of its pipeline and their letters."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession

from integration.conftest import Surroundings
from integration.spark.manifests import LAKE_SINK
from integration.spark.test_journal import OWN, admin, dead, entry, fences, lying, opened, source
from integration.spark.test_rows import make_stage, raw_order
from integration.topics import PARTITIONS, create_anew
from integration.waiting import eventually
from message_builders import make_letter_replay, make_replay
from waybill_shared.contract import codec
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.replays import EditedRecord, LetterReplay, ReplayMessage
from waybill_shared.contract.vectors import ENDLESS, Vector
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait
from waybill_shared.kafka.topics import create_missing
from waybill_spark.driver.letters import SparkLetters
from waybill_spark.kafka import replay_messages
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.kafka.replay_messages import ReplayMessages
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord, RawRecord, ReplayedAt
from waybill_spark.tracking.replaying import Replays

__all__ = ["admin", "fences", "source"]  # fixtures


ABSENT_S = 0.5


def asked_for(admin: KafkaAdmin, message: Message, offset: int) -> LetterReplay:
    topic = cast(str, message.topic())
    partition, at = position_of(message)
    return replace(
        make_letter_replay(),
        letter=LetterId(topic=topic, partition=partition, offset=at, source=offset),
        letter_topic_id=admin.identify([topic])[topic].topic_id,
        topic=topic.removesuffix(".dlq"),
        topic_id="an earlier id",
        partition=1,
    )


@pytest.fixture
def letters(spark: SparkSession, admin: KafkaAdmin) -> SparkLetters:
    stage = make_stage(spark, "SELECT order_id FROM orders", sinks=(LAKE_SINK,))
    return SparkLetters(admin, spark, stage, absent_s=ABSENT_S)


def start(messages: ReplayMessages, sinks: Sequence[Vector]) -> Replays:
    """Start as a driver does: it tries again while a new topic is not ready."""
    found: list[Replays] = []

    def try_once() -> bool:
        with suppress(Retryable):
            found.append(messages.start(sinks))
        return bool(found)

    eventually(try_once)
    return found[0]


def test_a_record_that_a_person_has_edited_is_found_so(
    letters: SparkLetters, source: str, fences: Fences
) -> None:
    opened(source, fences).write([dead(source, 7)], entry(source))
    (first,) = lying(fences, source)
    edited = EditedRecord(key=None, value=raw_order(order_id=5))
    asked = replace(asked_for(fences.admin, first, 7), edited=edited)
    (found,) = letters.find([asked])
    assert found is not None
    assert (found.key, found.value, found.headers) == (None, edited.value, OWN)


def test_a_record_is_found_as_it_was_when_it_died(
    letters: SparkLetters, source: str, fences: Fences
) -> None:
    opened(source, fences).write([dead(source, 7), dead(source, 9)], entry(source))
    first, second = lying(fences, source)
    offsets = {position_of(first): 7, position_of(second): 9}
    asked = [asked_for(fences.admin, m, offsets[position_of(m)]) for m in (second, first)]
    found = letters.find(asked)
    assert found == [
        RawRecord(
            topic=source,
            partition=1,
            offset=offset,
            key=b"\x00k",
            value=b"{",
            headers=OWN,
            timestamp=message.timestamp()[1],
        )
        for offset, message in ((9, second), (7, first))
    ]


def test_what_is_not_the_letter_that_was_meant_is_not_there(
    letters: SparkLetters, source: str, fences: Fences
) -> None:
    opened(source, fences).write([dead(source, 7)], entry(source))
    (message,) = lying(fences, source)
    asked = asked_for(fences.admin, message, 7)
    others = [
        replace(asked, letter=replace(asked.letter, source=8)),
        replace(asked, letter=replace(asked.letter, offset=asked.letter.offset + 100)),
        replace(asked, letter_topic_id="of an earlier topic"),
    ]
    for other in others:
        assert letters.find([other]) == [None], other
    assert letters.find([asked])[0] is not None


def test_one_that_dies_again_says_where_it_died_first(source: str, fences: Fences) -> None:
    at = ReplayedAt(topic="r", topic_id="P", partition=3, offset=6, source_id="an earlier id")
    first = dead(source, 7)
    again = DeadLetterRecord(record=replace(first.record, replayed=at), cause=first.cause)
    opened(source, fences).write([again], entry(source))
    (message,) = lying(fences, source)
    said = dict(cast(list[tuple[str, bytes]], message.headers())[len(OWN) :])
    assert said["waybill.topic_id"] == b"an earlier id"
    assert said["__connect.errors.offset"] == b"7"


def test_messages_of_the_pipeline_are_read_once(
    surroundings: Surroundings, admin: KafkaAdmin
) -> None:
    topic, key = f"{surroundings.prefix}.replays", f"default/{uuid.uuid4()}"
    producer = make_producer(surroundings.kafka)

    def send(body: object, whose: str = key) -> int:
        message = codec.encode(ReplayMessage(body=body))  # type: ignore[arg-type]
        return position_of(produce_and_wait(producer, topic, whose, message))[1]

    mine = make_letter_replay(1)
    first = send(mine)
    messages = ReplayMessages(admin, topic, key, ABSENT_S)
    messages.start([{}])
    found = messages.read()
    assert found is not None
    assert [(each.offset, each.asked) for each in found.letters] == [(first, mine)]
    assert found.end == first + 1
    assert found.topic_id == admin.identify([topic])[topic].topic_id
    assert messages.read() is None
    assert messages.find(*found.place, first) == mine
    other = send(mine, f"default/{uuid.uuid4()}")
    assert messages.find(*found.place, other + 100) is None
    assert ReplayMessages(admin, topic, "default/u", ABSENT_S).find(*found.place, first) is None
    send(make_replay())
    produce_and_wait(producer, topic, key, b"nothing that anybody can read")
    assert messages.read() is None
    second, third = send(make_letter_replay(2)), send(make_letter_replay(3))
    found = messages.read()
    assert found is not None
    assert [each.offset for each in found.letters] == [second, third]

    later = ReplayMessages(admin, topic, key, ABSENT_S)
    later.start([{found.place: third}, {found.place: third + 1}])
    again = later.read()
    assert again is not None
    assert [each.offset for each in again.letters] == [third]


def test_what_is_left_of_a_topic_that_was_created_again_is_named(
    surroundings: Surroundings, admin: KafkaAdmin
) -> None:
    name, key = f"replays-{uuid.uuid4().hex[:8]}", f"default/{uuid.uuid4()}"
    topic = f"{surroundings.prefix}.{name}"
    create_missing(admin, [NewTopic(topic, PARTITIONS, 1)])
    eventually(lambda: topic in admin.identify([topic]))
    messages = ReplayMessages(admin, topic, key, ABSENT_S)
    first = start(messages, [{}])
    assert (first.letters, first.end, first.gone) == ([], 0, [])
    assert first.topic_id == admin.identify([topic])[topic].topic_id
    create_anew(surroundings, name)
    message = codec.encode(ReplayMessage(body=make_letter_replay(1)))
    position = position_of(produce_and_wait(make_producer(surroundings.kafka), topic, key, message))
    with pytest.raises(Retryable):
        messages.read()
    again = start(messages, [{first.place: 0}, {first.place: ENDLESS}])
    assert again.gone == [first.place]
    assert again.topic_id == admin.identify([topic])[topic].topic_id
    found = messages.read()
    assert found is not None
    assert [each.offset for each in found.letters] == [position[1]]
    assert messages.start([{first.place: ENDLESS, again.place: 0}]).gone == []


def test_many_are_read_in_parts(
    surroundings: Surroundings, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_messages, "AT_ONCE", 2)
    topic, key = f"{surroundings.prefix}.replays", f"default/{uuid.uuid4()}"
    producer = make_producer(surroundings.kafka)
    sent: list[int] = []
    for number in range(5):
        message = codec.encode(ReplayMessage(body=make_letter_replay(number)))
        sent.append(position_of(produce_and_wait(producer, topic, key, message))[1])
    messages = ReplayMessages(admin, topic, key, ABSENT_S)
    messages.start([{}])
    parts = [messages.read() for _ in range(4)]
    assert [part and [each.offset for each in part.letters] for part in parts] == [
        sent[:2], sent[2:4], sent[4:], None
    ]  # fmt: skip
    assert [part and part.end for part in parts] == [sent[1] + 1, sent[3] + 1, sent[4] + 1, None]
