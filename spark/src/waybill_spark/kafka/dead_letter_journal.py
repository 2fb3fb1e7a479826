"""The journal of a stage's dead records.

Fulfils `waybill_spark.tracking.ports.DeadJournal`.

One transaction writes the records to their dead-letter topics, the facts about them to
`waybill.commits`, and the fence to `waybill.fences`. A reader of committed records never sees one
of these without the others. It ends before any sink of the batch is written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from waybill_shared.contract import codec
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters, DeadPositions
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import Fact, Fence, pipeline_key
from waybill_shared.contract.vectors import Vector
from waybill_shared.kafka.clients import position_of
from waybill_shared.kafka.errors import explain
from waybill_spark.kafka.fence_topic.moving import FenceTransactions
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.kafka.past_letters import FactsOf, read_past
from waybill_spark.tracking.dead_letters.letters import headers_of, letter_of
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord

TRANSACTION_TIMEOUT_S: Final = 10.0  # it holds back who reads the facts of other pipelines
COMPRESSION: Final = "gzip"  # a topic may have accepted a record only because it was compressed
FLUSH_TIMEOUT_S: Final = 8.0  # then there is time left to say so before Kafka ends it
LETTERS_MAX: Final = 500  # of a fact: 500 kB of a message that may have 1 MB
QUEUE_WAIT_S: Final = 0.05
_Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOf:
    """The stage that owns the journal.

    `topics`: the dead-letter topic of each topic that it reads. `key`: of the stage in the slot, if
    it is not made of its name.
    """

    pipeline: str
    stage: str
    since: int
    fence_key: str
    facts_key: str
    topics: Mapping[str, str]
    topic_ids: Mapping[str, str]
    key: str = ""

    @property
    def stage_key(self) -> str:
        """The key of the stage in the slot."""
        return self.key or f"{self.stage}@{self.since}"


class KafkaDeadJournal:
    def __init__(self, of: JournalOf, fences: Fences) -> None:
        self._of = of
        self._admin = fences.admin
        self._facts = f"{fences.prefix}.commits"
        self._transactions = FenceTransactions(
            f"journal of stage {of.stage}",
            of.fence_key,
            fences,
            timeout_s=TRANSACTION_TIMEOUT_S,
            compression=COMPRESSION,
        )

    def claim(self) -> None:
        self._transactions.claim()

    def last(self) -> Fence | None:
        return self._transactions.last()

    def past(self, starts: Vector) -> tuple[DeadPositions, ...]:
        of = self._of
        facts = FactsOf(topic=self._facts, key=of.facts_key, stage=of.stage_key)
        return read_past(self._admin, facts, starts)

    def write(self, records: Sequence[DeadLetterRecord], fence: Fence) -> Fence:
        return self._transactions.move(lambda producer: self._produce(producer, records, fence))

    def close(self) -> None:
        self._transactions.close()

    def _produce(
        self, producer: Producer, records: Sequence[DeadLetterRecord], fence: Fence
    ) -> Fence:
        letters = self._produce_dead(producer, records, fence)
        facts = list(facts_of((self._of.stage, self._of.since, self._of.key), letters, fence))
        key = pipeline_key(fence.tenant, fence.pipeline_uid)
        sending = _Sending(producer, "facts")
        for fact in facts:
            sending.produce(self._facts, key.encode(), codec.encode(fact))
        sending.finish()
        last = fence.batch.sequence + len(facts) - 1
        return replace(fence, batch=replace(fence.batch, sequence=last))

    def _produce_dead(
        self, producer: Producer, records: Sequence[DeadLetterRecord], fence: Fence
    ) -> list[DeadLetter]:
        """Write the records to their topics, and return where Kafka has put each."""
        sending = _Sending(producer, "dead letters")
        of = self._of
        for dead in records:
            record, source_id = dead.record, self._source_id(dead)
            own = headers_of(dead, source_id, fence, of.pipeline, stage_key=of.stage_key)
            headers: _Headers = [*own]
            topic = of.topics[record.topic]
            sending.produce(topic, record.key, record.value, headers)
        return [
            letter_of(dead, self._source_id(dead), place)
            for dead, place in zip(records, sending.finish(), strict=True)
        ]

    def _source_id(self, dead: DeadLetterRecord) -> str:
        """Return the id of the topic in which it died first: by now the name may have another."""
        replayed = dead.record.replayed
        return self._of.topic_ids[dead.record.topic] if replayed is None else replayed.source_id


class _Sending:
    """Some messages that are sent together, and their positions in Kafka."""

    def __init__(self, producer: Producer, what: str) -> None:
        self._producer = producer
        self._what = what
        self._places: dict[int, tuple[str, int, int]] = {}
        self._failed: list[tuple[str, KafkaError]] = []
        self._sent = 0

    def produce(
        self, topic: str, key: bytes | None, value: bytes | None, headers: _Headers | None = None
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    key=key,
                    value=value,
                    headers=headers or [],
                    on_delivery=self._note(self._sent, topic),
                )
                self._sent += 1
                return
            except BufferError:
                self._producer.poll(QUEUE_WAIT_S)

    def finish(self) -> list[tuple[str, int, int]]:
        """Return topic, partition and offset of each, in the order in which they were produced."""
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if self._failed:
            raise _translate(self._what, *self._failed[0])
        if left:
            raise Retryable(f"{self._what}: {left} not acknowledged in time")
        return [self._places[number] for number in range(self._sent)]

    def _note(self, number: int, topic: str) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                partition, offset = position_of(message)
                if offset >= 0:
                    self._places[number] = (topic, partition, offset)
                    return
                error = KafkaError(KafkaError.UNKNOWN, "a record without an offset")
            self._failed.append((topic, error))

        return note


def _translate(what: str, topic: str, error: KafkaError) -> Exception:
    text = f"{what}, topic {topic}: {explain(error)}"
    if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return Retryable(text)
    hint = (
        f"raise max.message.bytes of {topic}: a record needs 2 kB more there than in its source,"
        " and more still if its producer compresses better than gzip"
    )
    return UserError([Problem(message=text, hint=hint)])


def facts_of(
    stage: tuple[str, int, str],
    letters: Sequence[DeadLetter],
    fence: Fence,
    most: int = LETTERS_MAX,
) -> Iterator[Fact]:
    """Yield facts, each with a number of its own, and at most so many letters.

    `stage`: its name and life, and its key if that is not made of these.
    """
    for number, start in enumerate(range(0, len(letters), most)):
        yield Fact(
            tenant=fence.tenant,
            pipeline_uid=fence.pipeline_uid,
            generation=fence.generation,
            at=fence.batch.started_at,
            body=DeadLetters(
                stage=stage[0],
                since=stage[1],
                key=stage[2],
                sequence=fence.batch.sequence + number,
                letters=tuple(letters[start : start + most]),
            ),
        )
