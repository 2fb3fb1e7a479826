"""How we talk to Kafka: explicit client options, topic ids, ends, and reading a topic to its end.

Driver errors become `Retryable` here and nowhere else.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConsumerGroupDescription,
    ListOffsetsResultInfo,
    OffsetSpec,
    TopicDescription,
)

from shared.errors import Retryable
from shared.kafka_cluster import Kafka, KafkaCluster, cluster_of

logger = logging.getLogger(__name__)

ADMIN_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 2.0
POLL_S = 0.2
SILENT = 0  # the lowest syslog level
OLD_LEADER = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
GRANT_HINT = "`python -m shared.setup --print-acls` prints the commands that grant what is missing"
ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND})
URL_SAFE = str.maketrans("+/", "-_")
REJOIN_MAX_S = 60.0  # longer than any member needs to take its partitions over
T = TypeVar("T")

COMMON = {
    # Java's partitioner, so that a key lands where every other client puts it.
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    name: str
    topic_id: str
    partitions: tuple[int, ...]


def make_producer(kafka: Kafka, **options: object) -> Producer:
    """An idempotent producer with acks=all; `linger.ms` is low because somebody waits."""
    base = {**cluster_of(kafka).client_options(), "linger.ms": 1, "logger": logger}
    return Producer({**base, **COMMON, **options})


def make_consumer(kafka: Kafka, group: str, **options: object) -> Consumer:
    """A consumer whose offsets move only when its owner says so."""
    return Consumer(
        {
            **cluster_of(kafka).client_options(),
            "logger": logger,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
            # The broker's own minimum: so long nobody takes over from a process that was killed.
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_500,
            "allow.auto.create.topics": False,
            **options,
        }
    )


def make_admin(kafka: Kafka) -> "KafkaAdmin":
    # Every call says what went wrong; what librdkafka prints beside that helps nobody.
    cluster = cluster_of(kafka)
    return KafkaAdmin(AdminClient({**cluster.client_options(), "log_level": SILENT}), cluster)


def produce_and_wait(
    producer: Producer, topic: str, key: str, value: bytes, *, timeout_s: float = ADMIN_TIMEOUT_S
) -> Message:
    """Produce one message and return its delivery report; Retryable if it is not acknowledged."""
    reports: list[tuple[KafkaError | None, Message]] = []
    producer.produce(topic, key=key, value=value, on_delivery=lambda e, m: reports.append((e, m)))
    deadline = time.monotonic() + timeout_s
    while not reports and time.monotonic() < deadline:
        producer.poll(POLL_S)
    if not reports:
        raise Retryable(f"no acknowledgement from topic {topic} within {timeout_s} s")
    error, message = reports[0]
    if error is not None:
        raise Retryable(f"topic {topic} refused a message: {said(error)}")
    return message


def said(error: KafkaError) -> str:
    """What Kafka said; where a right is missing, also what to do."""
    return f"{error.str()} ({GRANT_HINT})" if error.code() in REFUSED else str(error.str())


def position_of(message: Message) -> tuple[int, int]:
    """Partition and offset of a message that came from Kafka."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


class KafkaAdmin:
    """Questions about topics. Every call has a time-out and raises Retryable when it passes."""

    def __init__(self, client: AdminClient, cluster: KafkaCluster) -> None:
        self.client = client
        self.cluster = cluster

    def reachable(self) -> str | None:
        """None when a broker answers, else what is wrong; a readiness check."""
        try:
            self.client.list_topics(timeout=READY_TIMEOUT_S)
        except KafkaException as error:
            return str(error.args[0].str())
        return None

    def cluster_id(self) -> str:
        try:
            return str(self.client.list_topics(timeout=READY_TIMEOUT_S).cluster_id)
        except KafkaException as error:
            raise Retryable(f"kafka: {error.args[0].str()}") from error

    def identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        """Id and partitions of those of `topics` that exist."""
        return identities(self.ask_identities(topics))

    def ask_identities(self, topics: Iterable[str]) -> "Mapping[str, Future[TopicDescription]]":
        """The question alone, for those who need not wait: `identities` reads the answers."""
        names = sorted(set(topics))
        if not names:
            return {}
        asked = TopicCollection(names)
        return self.client.describe_topics(asked, request_timeout=ADMIN_TIMEOUT_S)

    def operations(self, resource: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """What we may do with each, in Kafka's words: `Read`. Those that are not there are left
        out, and all are where the cluster does not tell."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        ask = self._ask_topics if resource == "topic" else self._ask_groups
        found = {}
        for name, future in ask(wanted).items():
            try:
                told = future.result().authorized_operations
            except KafkaException as error:
                code = error.args[0].code()
                if code in REFUSED:
                    found[name] = frozenset[str]()
                elif code not in ABSENT:
                    raise Retryable(f"{resource} {name}: {error.args[0].str()}") from error
            else:
                if told is not None:
                    found[name] = frozenset(each.name.title().replace("_", "") for each in told)
        return found

    def _ask_topics(self, names: list[str]) -> "dict[str, Future[TopicDescription]]":
        return self.client.describe_topics(
            TopicCollection(names),
            include_authorized_operations=True,
            request_timeout=ADMIN_TIMEOUT_S,
        )

    def _ask_groups(self, names: list[str]) -> "dict[str, Future[ConsumerGroupDescription]]":
        return self.client.describe_consumer_groups(
            names, include_authorized_operations=True, request_timeout=ADMIN_TIMEOUT_S
        )

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """One past the last record written, open transactions included."""
        return self._offsets(topic, partitions, OffsetSpec.latest())

    def ends_of(self, topics: Iterable[TopicIdentity]) -> dict[str, dict[int, int]]:
        """As `ends`, of many topics at once and by name, without those that do not answer now."""
        topics = list(topics)
        places = [TopicPartition(topic.name, p) for topic in topics for p in topic.partitions]
        asked = self.client.list_offsets(
            dict.fromkeys(places, OffsetSpec.latest()), request_timeout=ADMIN_TIMEOUT_S
        )
        found: dict[str, dict[int, int]] = {topic.name: {} for topic in topics}
        silent: set[str] = set()
        for at, future in asked.items():
            try:
                found[at.topic][at.partition] = _offset(future, at.topic)
            except Retryable:
                silent.add(at.topic)
        for topic in silent:
            self._find_leaders(topic)
        return {topic: ends for topic, ends in found.items() if topic not in silent}

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """How far a reader of committed records can see: up to the first open transaction."""
        committed = IsolationLevel.READ_COMMITTED
        return self._offsets(topic, partitions, OffsetSpec.latest(), committed)

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(topic, partitions, OffsetSpec.earliest())

    def _offsets(
        self,
        topic: str,
        partitions: Iterable[int],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in partitions}
        try:
            return self._ask_offsets(topic, wanted, isolation)
        except LeaderMoved:
            self._find_leaders(topic)
            return self._ask_offsets(topic, wanted, isolation)

    def _ask_offsets(
        self, topic: str, wanted: dict[TopicPartition, OffsetSpec], isolation: IsolationLevel
    ) -> dict[int, int]:
        futures = self.client.list_offsets(
            wanted,
            isolation_level=isolation,
            request_timeout=ADMIN_TIMEOUT_S,
        )
        return {at.partition: _offset(future, topic) for at, future in futures.items()}

    def _find_leaders(self, topic: str) -> None:
        """Without being told to, this client asks the leaders that it has found once for ever."""
        try:
            self.client.list_topics(topic, timeout=READY_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(f"topic {topic}: {error.args[0].str()}") from error


def identities(asked: "Mapping[str, Future[TopicDescription]]") -> dict[str, TopicIdentity]:
    found = {}
    for name, future in asked.items():
        try:
            described = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise Retryable(f"topic {name}: {said(error.args[0])}") from error
        found[name] = TopicIdentity(
            name=name,
            # Kafka prints ids url-safe, this client does not; one spelling everywhere.
            topic_id=str(described.topic_id).translate(URL_SAFE),
            partitions=tuple(sorted(p.id for p in described.partitions)),
        )
    return found


class LeaderMoved(Retryable):
    """What this client knows of a partition's leader is no longer so."""


def _offset(future: "Future[ListOffsetsResultInfo]", topic: str) -> int:
    """A broker that did not answer leaves no error in this client, but no offset either."""
    offset = _result(future, topic).offset
    if offset < 0:
        raise Retryable(f"topic {topic}: the broker did not say how far it goes")
    return int(offset)


def _result(future: "Future[T]", topic: str) -> T:
    try:
        return future.result()
    except KafkaException as error:
        kind = LeaderMoved if error.args[0].code() in OLD_LEADER else Retryable
        raise kind(f"topic {topic}: {said(error.args[0])}") from error


class Membership:
    """Ends a process whose consumer does not come back into its group.

    After its coordinator stood still librdkafka may poll for ever without an assignment; only a
    new consumer helps, and a new process is the plainest way to one.
    """

    def __init__(self, admin: KafkaAdmin, now: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._now = now
        self._outside_since: float | None = now()

    def joined(self) -> None:
        """The group gave this member its part, which may be nothing."""
        self._outside_since = None

    def left(self) -> None:
        self._outside_since = self._now()

    def check(self) -> None:
        """Raises RuntimeError when Kafka answers and the group still does not."""
        since = self._outside_since
        if since is None or self._now() - since < REJOIN_MAX_S:
            return
        if self._admin.reachable() is not None:
            self.left()  # counts from when Kafka is back
            return
        raise RuntimeError(f"the consumer's group gave it no part for {REJOIN_MAX_S:.0f} s")


def read_to_end(
    kafka: Kafka,
    topic: str,
    partitions: Iterable[int],
    *,
    starts: Callable[[int], int] = lambda partition: OFFSET_BEGINNING,
    timeout_s: float = 60.0,
) -> Iterator[Message]:
    """Committed messages from `starts` up to the ends as they stand now; Retryable when too slow.

    The end is the high watermark: behind somebody's open transaction this waits for its fate.
    """
    admin = make_admin(kafka)
    left = admin.ends(topic, partitions)
    consumer = make_consumer(kafka, "waybill-reader", **{"enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, p, starts(p)) for p in left])
        deadline = time.monotonic() + timeout_s
        left = {partition: end for partition, end in left.items() if end > 0}
        while left:
            if time.monotonic() > deadline:
                raise Retryable(f"topic {topic} could not be read to its end in {timeout_s} s")
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise Retryable(f"topic {topic}: {error.str()}")
            partition, at = position_of(message)
            reached = at if error is not None else at + 1
            if reached >= left.get(partition, 0):
                left.pop(partition, None)
            if error is None:
                yield message
    finally:
        consumer.close()
