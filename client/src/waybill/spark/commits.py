"""Sends commits to `waybill.commits`, and the last one again and again while nothing happens.

A commit that is lost on the way is thereby only late: what it says is still true later.
"""

import logging
import threading
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer

from shared import codec
from shared.clock import Clock
from shared.events import Commit, Fact, pipeline_key

logger = logging.getLogger(__name__)

REPEAT_INTERVAL_S = 3.0
FLUSH_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which stage of which pipeline, under which lease."""

    tenant: str
    pipeline_uid: str
    generation: int
    epoch: int


def message_of(commit: Commit, identity: Identity, now_ms: int) -> tuple[str, bytes]:
    """Key and value of the fact that `commit` is."""
    fact = Fact(
        tenant=identity.tenant,
        pipeline_uid=identity.pipeline_uid,
        generation=identity.generation,
        at=now_ms,
        body=commit,
    )
    return pipeline_key(fact.tenant, fact.pipeline_uid), codec.encode(fact)


class CommitEmitter:
    """Shared by the stages of one driver; callbacks come from several threads."""

    def __init__(self, producer: Producer, topic: str, identity: Identity, clock: Clock) -> None:
        self._producer = producer
        self._topic = topic
        self._identity = identity
        self._clock = clock
        self._last: dict[tuple[str, str], Commit] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="repeat commits", daemon=True)

    def __enter__(self) -> "CommitEmitter":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(FLUSH_TIMEOUT_S)

    def emit(self, commit: Commit) -> None:
        with self._lock:
            for sink in commit.sinks:
                self._last[(commit.stage, sink.name)] = commit
        self._send(commit)

    def _send(self, commit: Commit) -> None:
        key, value = message_of(commit, self._identity, self._clock.now_ms())
        try:
            self._producer.produce(self._topic, key=key, value=value)
        except (BufferError, KafkaException):
            logger.warning("commit waits for its repetition", extra={"stage": commit.stage})
        self._producer.poll(0)

    def _repeat(self) -> None:
        while not self._stop.wait(REPEAT_INTERVAL_S):
            with self._lock:
                commits = list(self._last.values())
            for commit in commits:
                self._send(commit)
