"""What the admin client answers, as our values and errors."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo, TopicDescription

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.errors import explain

UNANSWERED: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT})
OLD_LEADER = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,  # nobody: the broker that was asked did not know the new topic's yet
    }
)
ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND})
# What the controller says of a new topic only after it has looked whether there is one of that name
# (ReplicationControlManager, and ZkAdminManager before Kafka 4).
NOT_THERE: Final = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,  # another name is too like it: `a.b` and `a_b`
    }
)
MAY_NOT_ASK: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)
URL_SAFE = str.maketrans("+/", "-_")
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    name: str
    topic_id: str
    partitions: tuple[int, ...]


class LeaderMoved(Retryable):
    """Error: the leader of a partition is another than this client knows."""


def watched(asked: "Mapping[K, Future[T]]", silence: threading.Event) -> "Mapping[K, Future[T]]":
    """Set `silence` if one of the answers is that nobody answered."""
    for answer in asked.values():
        answer.add_done_callback(partial(_note, silence))
    return asked


def no_answer() -> "Future[Any]":
    """Return an answer that has failed with a timeout."""
    failed: Future[Any] = Future()
    failed.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    return failed


def identities(asked: "Mapping[str, Future[TopicDescription]]") -> dict[str, TopicIdentity]:
    """Return topics by name, without those that do not exist."""
    found = {}
    for name, future in asked.items():
        try:
            described = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise Retryable(f"topic {name}: {explain(error.args[0])}") from error
        found[name] = TopicIdentity(
            name=name,
            # Kafka prints ids url-safe, this client does not; one spelling everywhere.
            topic_id=str(described.topic_id).translate(URL_SAFE),
            partitions=tuple(sorted(p.id for p in described.partitions)),
        )
    return found


def offset_of(future: "Future[ListOffsetsResultInfo]", topic: str) -> int:
    """Return the offset of an answer. If a broker did not answer, there is neither an error nor an
    offset.
    """
    offset = result_of(future, topic).offset
    if offset < 0:
        raise LeaderMoved(f"topic {topic}: the broker did not say how far it goes")
    return int(offset)


def result_of(future: "Future[T]", topic: str) -> T:
    """Return the answer. Raise Retryable if it is an error."""
    try:
        return future.result()
    except KafkaException as error:
        kind = LeaderMoved if error.args[0].code() in OLD_LEADER else Retryable
        raise kind(f"topic {topic}: {explain(error.args[0])}") from error


def _note(silence: threading.Event, answer: "Future[object]") -> None:
    error = None if answer.cancelled() else answer.exception()
    if isinstance(error, KafkaException) and error.args[0].code() in UNANSWERED:
        silence.set()
