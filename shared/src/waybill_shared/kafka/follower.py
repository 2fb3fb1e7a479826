"""Follows a topic in a thread and hands every message to a view; no group, no commits."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Message
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.process import metrics

logger = logging.getLogger(__name__)

POLL_S = 0.1
RETRY_S = 1.0
# A broker sends messages at once. But that nothing follows the end of a transaction is known only
# when a fetch returns empty: so long waits who asks for all that is there.
FETCH_WAIT_MS = 100  # where requests ask that often
LONG_WAIT_MS = 500  # elsewhere: ten fetches a second of each follower were most work of a broker
ASK_TIMEOUT_S = 10.0  # the broker looks into one segment per partition
LAG_INTERVAL_S = 5.0  # between two looks at how far the topic has come
LAG_S_MAX = 3.0  # to read what was there: milliseconds, 0.5 s after a transaction
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTopic:
    """The topic that is followed, and where the first reading of it started, by partition."""

    topic_id: str
    begins: Mapping[int, int] = field(default_factory=dict)


class TopicFollower(Generic[M]):
    """Reads `topic` from its beginning for ever; `caught_up` is set at the ends seen at start.

    `accept` is called in the thread that reads. `since_ms`: leave out what was written before.
    `fetch_wait_ms`: FETCH_WAIT_MS where requests often wait for all that is there.
    """

    def __init__(
        self,
        kafka: Kafka,
        topic: str,
        message_type: type[M],
        accept: Callable[[M], None],
        *,
        since_ms: int | None = None,
        fetch_wait_ms: int = LONG_WAIT_MS,
    ) -> None:
        self._since_ms = since_ms
        self._fetch_wait_ms = fetch_wait_ms
        self.caught_up = threading.Event()
        self._kafka = kafka
        self._topic = topic
        self._type = message_type
        self._accept = accept
        self.following: FollowedTopic | None = None
        """None until the first reading starts; its `begins` are of use with `since_ms`."""
        self._reached: dict[int, int] = {}
        self._left: dict[int, int] = {}  # until it has caught up: the ends that are not reached
        self._lagging = False
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)
        self._watch = threading.Thread(target=self._look, name=f"lag of {topic}", daemon=True)

    def __enter__(self) -> "TopicFollower[M]":
        self._thread.start()
        self._watch.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        with self._moved:
            self._moved.notify_all()
        self._thread.join()
        self._watch.join()

    @property
    def begins(self) -> Mapping[int, int]:
        return {} if self.following is None else self.following.begins

    def accept(self, message: M, place: tuple[int, int]) -> None:
        """Accept a message. `place` is partition and offset, for subclasses that need it."""
        self._accept(message)

    def check(self) -> str | None:
        """Return None if all is known that was in the topic a moment ago, else what is wrong; a
        readiness check.
        """
        if not self._thread.is_alive():
            return f"topic {self._topic} is no longer read; restart this process"
        if not self.caught_up.is_set():
            return f"topic {self._topic} is still being read{self._how_far()}"
        return (
            f"topic {self._topic} is read with more than a moment's lag" if self._lagging else None
        )

    def _how_far(self) -> str:
        for partition, end in self._left.copy().items():
            return f": partition {partition} is at {self._reached.get(partition, 0)} of {end}"
        return ""

    def await_now(self, timeout_s: float) -> None:
        """Wait until all is known that is in the topic at this moment.

        Raise Retryable when it takes too long.
        """
        self.await_ends(self._ends_of(self._identify()), timeout_s)

    def await_ends(self, ends: Mapping[int, int], timeout_s: float) -> None:
        """Wait until all before these offsets is known. Raise Retryable when it takes too long."""
        if not self._reaches(ends, timeout_s):
            raise Retryable(f"topic {self._topic} was not read to its end within {timeout_s} s")

    @cached_property
    def _admin(self) -> KafkaAdmin:
        return make_admin(self._kafka)

    def _reaches(self, ends: Mapping[int, int], timeout_s: float) -> bool:
        def reached() -> bool:
            return all(self._reached.get(p, 0) >= end for p, end in ends.items())

        with self._moved:
            self._moved.wait_for(lambda: reached() or self._stop.is_set(), timeout_s)
            return reached()

    def _look(self) -> None:
        """Measure the lag in a separate thread, which notices when the reading one hangs."""
        while not self._stop.wait(LAG_INTERVAL_S):
            try:
                identity = self._identify()
                ends = self._ends_of(identity)
            except Retryable:
                continue  # that Kafka is away says nothing of this process
            self._compare(identity)
            self._lagging = not self._reaches(ends, LAG_S_MAX) and not self._stop.is_set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Retryable as error:
                logger.warning("topic cannot be followed", extra={"reason": str(error)})
                self._stop.wait(RETRY_S)

    def _compare(self, identity: TopicIdentity) -> None:
        """Compare the topic that is there now with the one that is followed; for subclasses."""

    def _is_over(self) -> bool:
        return self._stop.is_set()

    def _begin(self, identity: TopicIdentity) -> dict[int, int]:
        """Begin to follow this topic. Return its present ends."""
        if self.following is None:
            self.following = FollowedTopic(topic_id=identity.topic_id)
        return self._ends_of(identity)

    def _follow(self) -> None:
        ends = self._begin(self._identify())
        options = {"enable.partition.eof": True, "fetch.wait.max.ms": self._fetch_wait_ms}
        consumer = make_consumer(self._kafka, "waybill-follower", **options)
        try:
            starts = self._starts(consumer, ends)
            self._left = left = {p: end for p, end in ends.items() if end > max(starts[p], 0)}
            consumer.assign([TopicPartition(self._topic, p, at) for p, at in starts.items()])
            while not self._is_over():
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
                    self._take(message.value(), (partition, at))
                reached = at + (error is None)
                if reached >= left.get(partition, 0):
                    left.pop(partition, None)
                with self._moved:
                    self._reached[partition] = reached
                    self._moved.notify_all()
        finally:
            consumer.close()

    def _identify(self) -> TopicIdentity:
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist; create it with the admin step")
        return identity

    def _ends_of(self, identity: TopicIdentity) -> dict[int, int]:
        return self._admin.ends(self._topic, identity.partitions)

    def _starts(self, consumer: Consumer, ends: Mapping[int, int]) -> dict[int, int]:
        if self._since_ms is None:
            return dict.fromkeys(ends, OFFSET_BEGINNING)
        asked = [TopicPartition(self._topic, p, self._since_ms) for p in ends]
        try:
            found = consumer.offsets_for_times(asked, timeout=ASK_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(f"topic {self._topic}: {error.args[0].str()}") from error
        # Where nothing was written since, the end as it was before the question.
        begins = {p.partition: p.offset if p.offset >= 0 else ends[p.partition] for p in found}
        if self.following is not None and not self.following.begins:
            self.following = replace(self.following, begins=begins)
        return begins

    def _take(self, raw: bytes | None, place: tuple[int, int]) -> None:
        if raw is None:
            return
        try:
            self.accept(codec.decode(self._type, raw), place)
        except InvalidMessage as error:
            metrics.count("waybill_messages_skipped_total", topic=self._topic)
            logger.error("message skipped", extra={"topic": self._topic, "reason": str(error)})


class PlacedFollower(TopicFollower[M]):
    """A follower that also reports the partition and the offset of each message."""

    def __init__(
        self,
        kafka: Kafka,
        topic: str,
        message_type: type[M],
        accept: Callable[[M, tuple[int, int]], None],
        *,
        since_ms: int | None = None,
        fetch_wait_ms: int = LONG_WAIT_MS,
    ) -> None:
        super().__init__(
            kafka,
            topic,
            message_type,
            lambda _: None,
            since_ms=since_ms,
            fetch_wait_ms=fetch_wait_ms,
        )
        self._accept_placed = accept

    def accept(self, message: M, place: tuple[int, int]) -> None:
        self._accept_placed(message, place)


class IdentifiedFollower(TopicFollower[M]):
    """A follower that also reports the id of the topic, and the location of each message there.

    If the topic is created again, it reads the new one from where that begins.
    """

    def __init__(
        self,
        kafka: Kafka,
        topic: str,
        message_type: type[M],
        accept: Callable[[M, str, tuple[int, int]], None],
        *,
        since_ms: int | None = None,
    ) -> None:
        super().__init__(kafka, topic, message_type, lambda _: None, since_ms=since_ms)
        self._accept_identified = accept
        self._replaced = threading.Event()

    def accept(self, message: M, place: tuple[int, int]) -> None:
        assert self.following is not None
        self._accept_identified(message, self.following.topic_id, place)

    def _compare(self, identity: TopicIdentity) -> None:
        if self.following is not None and self.following.topic_id != identity.topic_id:
            self._replaced.set()

    def _is_over(self) -> bool:
        return self._stop.is_set() or self._replaced.is_set()

    def _begin(self, identity: TopicIdentity) -> dict[int, int]:
        self._replaced.clear()
        if self.following is not None and self.following.topic_id != identity.topic_id:
            logger.warning("topic was created again", extra={"topic": self._topic})
            self.caught_up.clear()
            self._reached.clear()
            self.following = None
        return super()._begin(identity)
