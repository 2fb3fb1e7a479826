"""An input and its dead-letter topic on a broker, as a driver fills it."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from builders import TENANT, make_input, make_record, make_stage
from integration.conftest import Surroundings
from integration.waiting import eventually
from message_builders import make_letter_headers
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.codec import decode, encode
from waybill_shared.contract.dead_letters import Headers, LetterId
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, pipeline_key
from waybill_shared.contract.replays import LetterReplay, ReplayMessage, ReplayPosition
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait, read_to_end
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0
PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A record as a reader of committed records has it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Grave:
    """A pipeline with its input, and that one's dead letters."""

    def __init__(self, around: Surroundings, admin: KafkaAdmin) -> None:
        self._around = around
        self._admin = admin
        self.topic = f"{around.prefix}.{uuid.uuid4().hex[:8]}.in"
        self.dead = f"{self.topic}.dlq"
        create(admin, self.topic)
        create(admin, self.dead)
        self.topic_id = admin.identify([self.topic])[self.topic].topic_id
        source = make_input(topic_id=self.topic_id, bases=(0,) * PARTITIONS)
        source = replace(source, topic=self.topic)
        self.record: PipelineRecord = replace(
            make_record(),
            tenant=TENANT,
            pipeline_uid=str(uuid.uuid4()),
            name=f"p{uuid.uuid4().hex[:8]}",
            stages=(make_stage(inputs=(source,)),),
        )
        self._producer = make_producer(around.kafka)

    def tell(self) -> None:
        """The pipeline to whoever follows pipelines."""
        key = pipeline_key(self.record.tenant, self.record.pipeline_uid)
        topic = f"{self._around.prefix}.pipelines"
        produce_and_wait(self._producer, topic, key, encode(self.record))

    def bury(
        self,
        offset: int,
        *,
        key: bytes | None = None,
        value: bytes | None = b"{",
        own: Headers = (),
        partition: int = 0,
        more: Mapping[str, str | None] | None = None,
    ) -> LetterId:
        """`more`: what else is told of it."""
        told = {
            named.TOPIC: self.topic,
            named.PARTITION: str(partition),
            named.OFFSET: str(offset),
            named.UID: self.record.pipeline_uid,
            named.TOPIC_ID: self.topic_id,
            named.STAGE: "enrich",
            **(more or {}),
        }
        reports: list[Message] = []
        self._producer.produce(
            self.dead,
            value,
            key,
            headers=list(make_letter_headers(told, own=own)),
            on_delivery=lambda error, message: reports.append(message),
        )
        assert self._producer.flush(WAIT_S) == 0
        at, where = position_of(reports[0])
        return LetterId(topic=self.dead, partition=at, offset=where, source=offset)

    def asked(self) -> list[tuple[ReplayPosition, LetterReplay]]:
        """What is to be replayed of the pipeline."""
        return [*written(self._around, self._admin, self.record.pipeline_uid)]

    def standing(self) -> list[Standing]:
        """What the input holds."""
        messages = read_to_end(self._around.kafka, self.topic, range(PARTITIONS))
        return [standing(message) for message in messages]


def written(
    around: Surroundings, admin: KafkaAdmin, *uids: str
) -> Iterator[tuple[ReplayPosition, LetterReplay]]:
    """What is to be replayed of these pipelines, as a reader of committed records finds it."""
    topic = f"{around.prefix}.replays"
    found = admin.identify([topic])[topic]
    for message in read_to_end(around.kafka, topic, found.partitions):
        body = decode(ReplayMessage, message.value() or b"").body
        if isinstance(body, LetterReplay) and body.pipeline_uid in uids:
            partition, offset = position_of(message)
            yield (
                ReplayPosition(topic_id=found.topic_id, partition=partition, offset=offset),
                body,
            )


def standing(message: Message) -> Standing:
    partition, offset = position_of(message)
    headers: Sequence[tuple[str, bytes | None]] = message.headers() or ()  # type: ignore[assignment]
    return Standing(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )


def create(admin: KafkaAdmin, topic: str, config: dict[str, str] | None = None) -> None:
    """As soon as every partition has a leader."""

    def there() -> bool:
        try:
            create_missing(admin, [NewTopic(topic, PARTITIONS, 1, config=config or {})])
            return admin.ends(topic, range(PARTITIONS)) == dict.fromkeys(range(PARTITIONS), 0)
        except Retryable:
            return False

    eventually(there, within_s=WAIT_S)
