"""Sends commits to `waybill.commits`, and the last one again until Kafka has it.

So a commit that is lost on the way is only late: its content is still true later. A commit that
Kafka has is sent again, too, with longer and longer pauses, because a topic may lose records.

Tokens wait while Kafka accepts none, and so does a run that ends by itself. After a while that is
an obstacle, and an error in the log.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from waybill_shared.contract.events import Commit
from waybill_shared.contract.words import Obstacle
from waybill_shared.process.clock import Clock
from waybill_spark.tracking.commits import Identity, message_of

logger = logging.getLogger(__name__)

REPEAT_S_MIN: Final = 3.0
REPEAT_S_MAX: Final = 600.0
LOOK_INTERVAL_S: Final = 1.0
FLUSH_TIMEOUT_S: Final = 10.0
LASTS_S: Final = 10.0  # longer than the election of a leader


@dataclass(slots=True)
class _Newest:
    """The newest commit of a sink. `due_at` is None until Kafka has reported on it."""

    commit: Commit
    unaccepted_since: float
    """Since when Kafka has the newest of this sink no more."""
    pause_s: float = REPEAT_S_MIN
    due_at: float | None = None
    acknowledged: bool = False

    def due(self, now: float) -> bool:
        return self.due_at is not None and self.due_at <= now

    def note_report(self, now: float, *, acknowledged: bool) -> None:
        if not acknowledged:
            self.pause_s = REPEAT_S_MIN
        self.due_at = now + self.pause_s
        self.acknowledged = self.acknowledged or acknowledged
        if acknowledged:
            self.pause_s = min(2 * self.pause_s, REPEAT_S_MAX)


class CommitEmitter:
    """Sends the commits of all stages of one driver. Callbacks run in several threads."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        identity: Identity,
        clock: Clock,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._identity = identity
        self._clock = clock
        self._now = now
        self._newest: dict[tuple[str, str], _Newest] = {}
        self._error = "no answer yet"
        """What Kafka said when it accepted none."""
        self._blocked: Obstacle | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="repeat commits", daemon=True)

    def __enter__(self) -> "CommitEmitter":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(FLUSH_TIMEOUT_S)

    def emit(self, commit: Commit) -> None:
        key = commit.stage, commit.sink
        with self._lock:
            before, now = self._newest.get(key), self._now()
            waits = before is not None and not before.acknowledged
            since = before.unaccepted_since if before is not None and waits else now
            newest = self._newest[key] = _Newest(commit=commit, unaccepted_since=since)
        self._send(newest)

    def has_all(self) -> bool:
        """Return True if Kafka has the newest commit of every sink."""
        self._producer.poll(0)
        with self._lock:
            return all(newest.acknowledged for newest in self._newest.values())

    def look(self) -> Obstacle | None:
        """Return COMMITS_NOT_ACCEPTED if Kafka has accepted none of a sink for a while."""
        self._producer.poll(0)
        with self._lock:
            waiting = [each for each in self._newest.values() if not each.acknowledged]
            since = min((each.unaccepted_since for each in waiting), default=None)
        lasts = since is not None and self._now() - since >= LASTS_S
        blocked = Obstacle.COMMITS_NOT_ACCEPTED if lasts else None
        if blocked != self._blocked:
            self._blocked = blocked
            self._log(blocked)
        return blocked

    def _log(self, blocked: Obstacle | None) -> None:
        if blocked is None:
            logger.info("kafka accepts commits again")
        else:
            about = {"topic": self._topic, "reason": self._error}
            logger.error("kafka does not accept commits", extra=about)

    def repeat(self) -> None:
        """Send again what is due. First process Kafka's answers for earlier messages."""
        self._producer.poll(0)
        now = self._now()
        with self._lock:
            due = [each for each in self._newest.values() if each.due(now)]
        for newest in due:
            self._send(newest)

    def _send(self, newest: _Newest) -> None:
        key, value = message_of(newest.commit, self._identity, self._clock.now_ms())
        newest.due_at = None

        def note(error: KafkaError | None, message: Message) -> None:
            self._error = self._error if error is None else error.str()
            newest.note_report(self._now(), acknowledged=error is None)

        try:
            self._producer.produce(self._topic, key=key, value=value, on_delivery=note)
        except (BufferError, KafkaException) as error:
            self._error = str(error) or type(error).__name__
            newest.note_report(self._now(), acknowledged=False)
            logger.warning("commit waits for its repetition", extra={"stage": newest.commit.stage})
        self._producer.poll(0)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_INTERVAL_S):
            self.repeat()
