"""Tracks what a producer of confluent_kafka delivers, so that a token covers exactly that.

`produce` announces a record, and passes it to the producer. Later the producer calls back with a
delivery report, in any thread, and `take` notes its offset or its failure. When the client is asked
for the token, `settle` flushes the producer and waits until no report is missing. Then `spans`
joins the offsets into runs, and the client asks Waybill for a token that covers these.

Sends nothing of its own and never changes the producer. The topic ids are those that the pipeline
reads; with the id of the producer's cluster they make sure that its offsets mean its records.
"""

import threading
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

from waybill.errors import KafkaAway, NotDelivered, StillUndelivered, Unusable, WaybillError
from waybill.models import FailedRecord, Span
from waybill.pipelines import Pipeline

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from confluent_kafka import Producer as Producer  # noqa: PLC0414 - the faces name it too

    OnDelivery = Callable[[KafkaError | None, Message], object]

SPANS_MAX = 10_000  # in one question to ingress
NO_OFFSET = (
    "acknowledged without an offset, as with acks=0: it may be there, but nobody can say where;"
    " a token for all that the input holds covers it"
)


class Deliveries:
    """The delivery reports of one block: what is missing, delivered and failed; for any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._outstanding = 0
        self._runs: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._failed: list[FailedRecord] = []

    def announce(self, records: int) -> None:
        """Expect so many more delivery reports; fewer if the number is negative."""
        with self._changed:
            self._outstanding += records

    def take(self, error: "KafkaError | None", message: "Message") -> None:
        """Accept one delivery report."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        with self._changed:
            self._outstanding -= 1
            if error is None and topic and partition is not None and _is_place(offset):
                _extend(self._runs.setdefault((topic, partition), []), offset)
            else:
                self._failed.append(_read_failure(error, message))
            self._changed.notify_all()

    def take_failed(self) -> tuple[FailedRecord, ...]:
        with self._changed:
            failed, self._failed = tuple(self._failed), []
            return failed

    def settle(self, producer: "Producer", timeout_s: float) -> None:
        """Wait until every record is delivered; else raise NotDelivered or StillUndelivered."""
        ends_at = time.monotonic() + timeout_s
        producer.flush(timeout_s)
        with self._changed:
            # Another thread may have polled the last reports and not passed them on yet.
            left_s = max(0.0, ends_at - time.monotonic())
            self._changed.wait_for(lambda: self._outstanding == 0, left_s)
            if self._failed:
                raise NotDelivered(failed=tuple(self._failed))
            if self._outstanding:
                raise StillUndelivered(outstanding=self._outstanding, timeout_s=timeout_s)

    def spans(self, topic_ids: Mapping[str, str]) -> list[Span]:
        with self._changed:
            runs = {place: _unite(runs) for place, runs in sorted(self._runs.items())}
            self._runs = runs
            return [
                Span(
                    topic=topic,
                    topic_id=topic_ids[topic],
                    partition=partition,
                    start=start,
                    end=end,
                )
                for (topic, partition), united in runs.items()
                for start, end in united
            ]


class Tracking:
    """A tracked producer: what both clients share of it."""

    def __init__(
        self,
        producer: "Producer",
        pipeline: Pipeline,
        cluster_id: str,
        on_delivery: "OnDelivery | None",
    ) -> None:
        self._producer = producer
        self._pipeline = pipeline.name
        self._topic_ids = topic_ids_of(pipeline)
        self._cluster_id = cluster_id
        self._on_delivery = on_delivery
        self._deliveries = Deliveries()
        self._closed = False

    def produce(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int = -1,
        *,
        on_delivery: "OnDelivery | None" = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """Produce one record as `Producer.produce` does, and cover it with the token.

        `on_delivery` is called as always, and so is that of `track` when there is none; one in the
        producer's configuration is not. Unusable: no input of the pipeline reads the topic.
        Whatever the producer raises, as BufferError, comes through, and the record is not covered.
        """
        if self._closed:
            raise RuntimeError("the block that tracks this producer is over")
        if topic not in self._topic_ids:
            known = ", ".join(sorted(self._topic_ids))
            raise Unusable(
                f"no input of pipeline {self._pipeline} reads topic {topic}, they read {known}:"
                " produce it with the producer itself"
            )
        callback = on_delivery or self._on_delivery

        def report(error: "KafkaError | None", message: "Message") -> None:
            self._deliveries.take(error, message)
            if callback is not None:
                callback(error, message)

        record: dict[str, Any] = {
            "value": value,
            "key": key,
            "partition": partition,
            "timestamp": timestamp,
            "headers": headers,
        }
        self._deliveries.announce(1)
        try:
            self._producer.produce(topic=topic, on_delivery=report, **record)
        except Exception:
            self._deliveries.announce(-1)
            raise

    def take_failed(self) -> tuple[FailedRecord, ...]:
        """Return the records that were not delivered until now, and forget them.

        They are yours again: until then `token` raises NotDelivered.
        """
        return self._deliveries.take_failed()

    def close(self) -> None:
        """Close the block; `token` may still be asked for."""
        self._closed = True

    def _settle(self, timeout_s: float) -> list[list[Span]]:
        """Return the spans of all records, in parts that fit into one question."""
        self._deliveries.settle(self._producer, timeout_s)
        spans = self._deliveries.spans(self._topic_ids)
        if not spans:
            raise Unusable(f"nothing was produced to pipeline {self._pipeline} in this block")
        return [spans[at : at + SPANS_MAX] for at in range(0, len(spans), SPANS_MAX)]


def topic_ids_of(pipeline: Pipeline) -> dict[str, str]:
    """Return the ids of the topics that its inputs read."""
    found = {source.topic: source.topic_id for source in pipeline.inputs if source.topic_id}
    if not found:
        raise WaybillError(
            f"pipeline {pipeline.name} is {pipeline.phase} and reads no topic yet:"
            f" `wait_pipeline({pipeline.name!r})` first"
        )
    return found


def cluster_of(producer: "Producer", pipeline: Pipeline, timeout_s: float) -> str:
    """Return the id of the Kafka that the producer writes to, as that Kafka reports it."""
    kafka = _library()
    if not isinstance(producer, kafka.Producer):
        kind = f"{type(producer).__module__}.{type(producer).__qualname__}"
        raise TypeError(f"track takes a confluent_kafka.Producer, not a {kind}")
    topic = next(iter(topic_ids_of(pipeline)))
    try:
        cluster_id = producer.list_topics(topic, timeout=timeout_s).cluster_id
    except kafka.KafkaException as error:
        raise KafkaAway(
            f"the producer's Kafka did not answer within {timeout_s:g} s: {error.args[0].str()}"
        ) from error
    if not cluster_id:
        raise WaybillError("the producer's Kafka has no id: make tokens of positions yourself")
    return str(cluster_id)


def _library() -> ModuleType:
    try:
        import confluent_kafka
    except ImportError as error:
        raise WaybillError(
            "tracking a producer needs confluent-kafka: pip install 'waybill-client[kafka]'"
        ) from error
    return confluent_kafka


def _is_place(offset: int | None) -> TypeGuard[int]:
    return offset is not None and offset >= 0


def _read_failure(error: "KafkaError | None", message: "Message") -> FailedRecord:
    return FailedRecord(
        topic=message.topic() or "",
        partition=message.partition(),
        key=message.key(),
        value=message.value(),
        reason=NO_OFFSET if error is None else error.str(),
    )


def _extend(runs: list[tuple[int, int]], offset: int) -> None:
    """Add one offset; offsets in order make one run."""
    if runs and runs[-1][1] == offset:
        runs[-1] = (runs[-1][0], offset + 1)
    else:
        runs.append((offset, offset + 1))


def _unite(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united
