"""Questions about topics and groups: who they are, how far they go, what we may do with them.

Driver errors become `Retryable` here and in `waybill_shared.kafka.clients`, and nowhere else.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Final, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConsumerGroupDescription,
    NewTopic,
    OffsetSpec,
    TopicDescription,
)

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin_answers import (
    ABSENT,
    MAY_NOT_ASK,
    NOT_THERE,
    UNANSWERED,
    LeaderMoved,
    TopicIdentity,
    identities,
    no_answer,
    offset_of,
    result_of,
    watched,
)
from waybill_shared.kafka.cluster import Kafka, KafkaCluster, cluster_of
from waybill_shared.kafka.errors import REFUSED, explain

ADMIN_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 2.0
COORDINATOR_TIMEOUT_S: Final = 3600.0
"""The longest that librdkafka takes. It ends the process when it finds the coordinator of a group
only after the time-out of the question (2.16, its issue 4605)."""
RENEWAL_S: Final = 20.0  # no request takes longer
SILENT = 0  # the lowest syslog level
K = TypeVar("K")
T = TypeVar("T")


def make_admin(kafka: Kafka) -> "KafkaAdmin":
    # Every call says what went wrong; what librdkafka prints in addition helps nobody.
    cluster = cluster_of(kafka)
    return KafkaAdmin(
        lambda: AdminClient({**cluster.client_options(), "log_level": SILENT}), cluster
    )


class KafkaAdmin:
    """Questions about topics. Every call has a time-out and raises Retryable when it passes. A
    client that got no answer is replaced. A single broker without an answer from its controller
    for some seconds reports no brokers, and then a client may never find any (librdkafka 2.10 to
    2.16)."""

    def __init__(self, make: Callable[[], AdminClient], cluster: KafkaCluster) -> None:
        self.client = make()
        self.cluster = cluster
        self._make = make
        self._last: AdminClient | None = None
        """Kept, because when a client is deleted, those who still wait for it get no answer."""
        self._silence = threading.Event()
        """Set when this client got no answer; the next one gets an event of its own."""
        self._renewed_at = -RENEWAL_S
        self._lock = threading.Lock()

    def ask(
        self, question: "Callable[[AdminClient], Mapping[K, Future[T]]]"
    ) -> "Mapping[K, Future[T]]":
        """Return the answers as futures; give each question a time-out of less than `RENEWAL_S`. A
        thread of librdkafka completes them. A callback must not keep the client: with its last
        reference the client would end in that thread, and the process with it.
        """
        client, silence = self._find_client()
        return watched(question(client), silence)

    def ask_coordinators(
        self, question: "Callable[[AdminClient], Mapping[K, Future[T]]]", timeout_s: float
    ) -> "Mapping[K, Future[T]]":
        """Return what coordinators of groups answered in time; all others have failed.

        Give each question `COORDINATOR_TIMEOUT_S`: its client is replaced long before that."""
        client, silence = self._find_client()
        asked = watched(question(client), silence)
        late = wait(asked.values(), timeout_s).not_done
        if late:
            silence.set()
        return {key: no_answer() if answer in late else answer for key, answer in asked.items()}

    def reachable(self) -> str | None:
        """Return None when a broker answers, else what is wrong; a readiness check."""
        try:
            self._metadata()
        except KafkaException as error:
            return str(error.args[0].str())
        return None

    def cluster_id(self) -> str:
        try:
            return str(self._metadata().cluster_id)
        except KafkaException as error:
            raise Retryable(f"kafka: {error.args[0].str()}") from error

    def brokers(self) -> list[str]:
        """Return the addresses of the brokers that are alive, as one of them reports."""
        asked = self.ask(
            lambda client: {"": client.describe_cluster(request_timeout=ADMIN_TIMEOUT_S)}
        )
        try:
            nodes = asked[""].result().nodes
        except KafkaException as error:
            raise Retryable(f"kafka: {error.args[0].str()}") from error
        return [f"[{n.host}]:{n.port}" if ":" in n.host else f"{n.host}:{n.port}" for n in nodes]

    def identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        """Return id and partitions of those of `topics` that exist."""
        return identities(self.ask_identities(topics))

    def absent(self, topic: str) -> bool:
        """Return True if the controller, which creates and deletes topics, does not have this one.

        A broker that was cut off does not know every topic. Nothing is created. True also if we may
        not ask, else no deletion could be found where only admins create topics. Other errors raise
        Retryable. `KafkaError.retriable` does not help: it is False for all errors of brokers.
        """
        try:
            self._ask_creation([topic])[topic].result()
        except KafkaException as error:
            fault = error.args[0]
            if fault.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            if fault.code() not in NOT_THERE | MAY_NOT_ASK:
                raise Retryable(f"topic {topic}: {explain(fault)}") from error
        return True

    def forbidden(self, topics: Iterable[str]) -> list[str]:
        """List those of `topics`, which do not exist, that we may not create. Nothing is
        created.
        """
        found = []
        for topic, answer in self._ask_creation(sorted(topics)).items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() in MAY_NOT_ASK:
                    found.append(topic)
                elif error.args[0].code() in UNANSWERED:
                    raise Retryable(f"topic {topic}: {explain(error.args[0])}") from error
        return found

    def _ask_creation(self, topics: list[str]) -> "Mapping[str, Future[None]]":
        wanted = [NewTopic(topic, 1) for topic in topics]
        if not wanted:
            return {}
        return self.ask(
            lambda client: client.create_topics(
                wanted, validate_only=True, request_timeout=ADMIN_TIMEOUT_S
            )
        )

    def ask_identities(self, topics: Iterable[str]) -> "Mapping[str, Future[TopicDescription]]":
        """Ask without waiting: `identities` reads the answers."""
        names = sorted(set(topics))
        if not names:
            return {}
        wanted = TopicCollection(names)
        return self.ask(
            lambda client: client.describe_topics(wanted, request_timeout=ADMIN_TIMEOUT_S)
        )

    def operations(self, resource: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return what we may do with each, in Kafka's words: `Read`. Those that do not exist are
        left out, and all are if the cluster does not report it.
        """
        wanted = sorted(set(names))
        if not wanted:
            return {}
        ask = self._ask_topics if resource == "topic" else self._ask_groups
        found = {}
        for name, future in ask(wanted).items():
            try:
                rights = future.result().authorized_operations
            except KafkaException as error:
                code = error.args[0].code()
                if code in REFUSED:
                    found[name] = frozenset[str]()
                elif code not in ABSENT:
                    raise Retryable(f"{resource} {name}: {error.args[0].str()}") from error
            else:
                if rights is not None:
                    found[name] = frozenset(each.name.title().replace("_", "") for each in rights)
        return found

    def _ask_topics(self, names: list[str]) -> "Mapping[str, Future[TopicDescription]]":
        topics = TopicCollection(names)
        return self.ask(
            lambda client: client.describe_topics(
                topics, include_authorized_operations=True, request_timeout=ADMIN_TIMEOUT_S
            )
        )

    def _ask_groups(self, names: list[str]) -> "Mapping[str, Future[ConsumerGroupDescription]]":
        return self.ask_coordinators(
            lambda client: client.describe_consumer_groups(
                names, include_authorized_operations=True, request_timeout=COORDINATOR_TIMEOUT_S
            ),
            ADMIN_TIMEOUT_S,
        )

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset after the last record of each partition, open transactions included."""
        return self._offsets(topic, partitions, OffsetSpec.latest())

    def ends_of(self, topics: Iterable[TopicIdentity]) -> dict[str, dict[int, int]]:
        """Return `ends` of many topics at once by name, without those that do not answer now."""
        topics = list(topics)
        places = [TopicPartition(topic.name, p) for topic in topics for p in topic.partitions]
        wanted = dict.fromkeys(places, OffsetSpec.latest())
        asked = self.ask(
            lambda client: client.list_offsets(wanted, request_timeout=ADMIN_TIMEOUT_S)
        )
        found: dict[str, dict[int, int]] = {topic.name: {} for topic in topics}
        silent: set[str] = set()
        for at, future in asked.items():
            try:
                found[at.topic][at.partition] = offset_of(future, at.topic)
            except Retryable:
                silent.add(at.topic)
        if silent:
            self._find_leaders()
        return {topic: ends for topic, ends in found.items() if topic not in silent}

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return how far a reader of committed records can see: up to the first open
        transaction.
        """
        committed = IsolationLevel.READ_COMMITTED
        return self._offsets(topic, partitions, OffsetSpec.latest(), committed)

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(topic, partitions, OffsetSpec.earliest())

    def starts_at(self, topic: str, partitions: Iterable[int], at_ms: int) -> dict[int, int]:
        """Return the first record written at this time or later, where there is one."""
        wanted = {TopicPartition(topic, p): OffsetSpec.for_timestamp(at_ms) for p in partitions}
        asked = self.ask(
            lambda client: client.list_offsets(wanted, request_timeout=ADMIN_TIMEOUT_S)
        )
        found = {at.partition: int(result_of(answer, topic).offset) for at, answer in asked.items()}
        return {at: offset for at, offset in found.items() if offset >= 0}

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
            self._find_leaders()
        try:
            return self._ask_offsets(topic, wanted, isolation)
        except LeaderMoved:
            self._find_leaders()  # for who asks next
            raise

    def _ask_offsets(
        self, topic: str, wanted: dict[TopicPartition, OffsetSpec], isolation: IsolationLevel
    ) -> dict[int, int]:
        futures = self.ask(
            lambda client: client.list_offsets(
                wanted, isolation_level=isolation, request_timeout=ADMIN_TIMEOUT_S
            )
        )
        return {at.partition: offset_of(future, topic) for at, future in futures.items()}

    def _find_leaders(self) -> None:
        """Ask for the metadata, because this client never asks for a leader again that it knows.
        All topics are asked for: one that is named would be created, where brokers do so.
        """
        try:
            self._metadata()
        except KafkaException as error:
            raise Retryable(f"kafka: {error.args[0].str()}") from error

    def _metadata(self) -> ClusterMetadata:
        client, silence = self._find_client()
        try:
            return client.list_topics(timeout=READY_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in UNANSWERED:
                silence.set()
            raise

    def _find_client(self) -> tuple[AdminClient, threading.Event]:
        """Return the client, a new one if the last got no answer."""
        with self._lock:
            now = time.monotonic()
            if self._silence.is_set() and now >= self._renewed_at + RENEWAL_S:
                self._last, self.client = self.client, self._make()
                self._silence = threading.Event()
                self._renewed_at = now
            return self.client, self._silence
