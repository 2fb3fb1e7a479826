"""Reads again what a stage has reported of its dead letters, as far as the facts are kept.

They are kept as long as tokens live. So whatever a token may call dead is found here.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from waybill_shared.contract import codec
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters, DeadPositions
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Fact
from waybill_shared.contract.slots import key_of_letters
from waybill_shared.contract.vectors import Vector
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.partitioner import partition_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsOf:
    """The facts of one life of a stage: their topic, their key, and its key in the slot."""

    topic: str
    key: str
    stage: str


def read_past(admin: KafkaAdmin, of: FactsOf, starts: Vector) -> tuple[DeadPositions, ...]:
    """Return what was reported of the stage from `starts` on. What died in a replay is where its
    message is. Raise Retryable if the topic cannot be read.
    """
    return tuple(
        DeadPositions(
            topic_id=at.topic_id,
            partition=at.partition,
            offsets=(at.offset,),
            sink=letter.sink,
        )
        for letter in _letters(admin, of)
        for at in [letter.replayed or letter]
        if at.offset >= starts.get((at.topic_id, at.partition), at.offset + 1)
    )


def _letters(admin: KafkaAdmin, of: FactsOf) -> Iterator[DeadLetter]:
    identity = admin.identify([of.topic]).get(of.topic)
    if identity is None:
        raise Retryable(f"topic {of.topic}: a broker does not know it")
    partition = partition_of(of.key, len(identity.partitions))
    for message in read_to_end(admin.cluster, of.topic, [partition]):
        if message.key() != of.key.encode():
            continue
        try:
            body = codec.decode(Fact, message.value() or b"").body
        except InvalidMessage as error:  # the tracker skips it, too
            logger.error("fact cannot be read", extra={"reason": str(error)})
            continue
        if isinstance(body, DeadLetters) and key_of_letters(body) == of.stage:
            yield from body.letters
