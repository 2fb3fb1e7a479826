"""Follows a topic in a thread and hands every message to a view; no group, no commits."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from shared import codec, metrics
from shared.errors import InvalidMessage, Retryable
from shared.events import Message
from shared.kafka import make_admin, make_consumer

logger = logging.getLogger(__name__)

POLL_S = 0.1
RETRY_S = 1.0
M = TypeVar("M", bound=Message)


class TopicFollower(Generic[M]):
    """Reads `topic` from its beginning for ever; `caught_up` is set at the ends seen at start."""

    def __init__(
        self, bootstrap: str, topic: str, message_type: type[M], accept: Callable[[M], None]
    ) -> None:
        self.caught_up = threading.Event()
        self._bootstrap = bootstrap
        self._topic = topic
        self._type = message_type
        self._accept = accept
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)

    def __enter__(self) -> "TopicFollower[M]":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> str | None:
        """For /readyz: None when all that stood in the topic at start is known."""
        if not self._thread.is_alive():
            return f"topic {self._topic} is no longer read; restart this process"
        return None if self.caught_up.is_set() else f"topic {self._topic} is still being read"

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Retryable as error:
                logger.warning("topic cannot be followed", extra={"reason": str(error)})
                self._stop.wait(RETRY_S)

    def _follow(self) -> None:
        admin = make_admin(self._bootstrap)
        identity = admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist; create it with the admin step")
        ends = admin.ends(self._topic, identity.partitions)
        left = {partition: end for partition, end in ends.items() if end > 0}
        options: dict[str, object] = {"enable.partition.eof": True}
        consumer = make_consumer(self._bootstrap, "waybill-follower", **options)
        try:
            consumer.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in ends])
            while not self._stop.is_set():
                if not left:
                    self.caught_up.set()
                message = consumer.poll(POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    logger.warning("topic read failed", extra={"reason": error.str()})
                    continue
                partition, at = message.partition(), message.offset()
                assert partition is not None and at is not None
                if error is None:
                    self._take(message.value())
                if at + (error is None) >= left.get(partition, 0):
                    left.pop(partition, None)
        finally:
            consumer.close()

    def _take(self, raw: bytes | None) -> None:
        if raw is None:
            return
        try:
            self._accept(codec.decode(self._type, raw))
        except InvalidMessage as error:
            metrics.count("waybill_messages_skipped_total", topic=self._topic)
            logger.error("message skipped", extra={"topic": self._topic, "reason": str(error)})
