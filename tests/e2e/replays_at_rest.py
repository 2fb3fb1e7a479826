"""Asks for replays as `ingress` does it: writes the messages, and seals the token."""

import secrets
from collections.abc import Sequence
from typing import cast

from confluent_kafka import Message

from waybill import Client
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.contract import codec
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId, split_headers
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.replays import LetterReplay, ReplayMessage
from waybill_shared.contract.sealing import NONCE_BYTES
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import record_spans
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait, read_to_end
from waybill_shared.process.clock import SystemClock


class Replayer:
    """Of one pipeline, in which all stages and sinks have lived since the first generation."""

    def __init__(self, client: Client, stack: StackState, kafka: KafkaAdmin, name: str) -> None:
        self._client = client
        self._stack = stack
        self._kafka = kafka
        self._name = name
        self._producer = make_producer(stack.kafka)

    def letters(self, topic: str) -> list[Message]:
        """Those in the dead-letter topic of a topic with one partition."""
        return [*read_to_end(self._stack.kafka, f"{topic}.dlq", [0])]

    def replay(self, letters: Sequence[Message], *sinks: str) -> str:
        """Replay letters of one stage into these sinks of it, and return the token."""
        pipeline = self._client.pipeline(self._name)
        uid = str(pipeline.uid)
        topic, key = f"{topic_prefix()}.replays", pipeline_key(DEFAULT_TENANT, uid)
        topic_id = self._kafka.identify([topic])[topic].topic_id
        asked = [self._asked(letter, sinks, uid) for letter in letters]
        written = [
            produce_and_wait(self._producer, topic, key, codec.encode(ReplayMessage(body=each)))
            for each in asked
        ]
        part = Part(
            pipeline_id=pipeline_id(DEFAULT_TENANT, uid),
            generation=cast(int, pipeline.generation),
            spans=record_spans((topic_id, *position_of(message)) for message in written),
            into=asked[0].sinks,
        )
        token = Token(issued_at=SystemClock().now_ms(), request_id="00" * 8, parts=(part,))
        ring = load_key_ring(self._stack.folder / "keys.json")
        return seal(token, ring, tenant=DEFAULT_TENANT, nonce=secrets.token_bytes(NONCE_BYTES))

    def _asked(self, letter: Message, sinks: Sequence[str], uid: str) -> LetterReplay:
        headers = split_headers(cast("list[tuple[str, bytes | None]]", letter.headers()))
        assert headers is not None
        said, topic = headers.facts, cast(str, letter.topic())
        partition, offset = position_of(letter)
        stage = said[named.STAGE]
        return LetterReplay(
            tenant=DEFAULT_TENANT,
            pipeline_uid=uid,
            at=SystemClock().now_ms(),
            stage=f"{stage}@1",
            sinks=tuple(f"{stage}/{sink}@1" for sink in sinks),
            letter=LetterId(
                topic=topic, partition=partition, offset=offset, source=int(said[named.OFFSET])
            ),
            letter_topic_id=self._kafka.identify([topic])[topic].topic_id,
            topic=said[named.TOPIC],
            topic_id=said[named.TOPIC_ID],
            partition=int(said[named.PARTITION]),
            size=100,
        )
