"""Sends events of commits, phases and dead letters to other programs.

Promise: each is sent, in the order of its pipeline. A commit is sent only after its slot has it, so
that a program that then asks gets the same answer. A message that is received again is sent again
only by another process, and then as the same event.

The announcer has its own consumer group. So a failure here delays no slot.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.status_events import StatusEvent
from waybill_token_tracker.core.announcements import id_of, is_old, of_fact, of_lifecycle

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
LOOK_S: Final = 0.02  # between two looks at a slot
SENT_MAX: Final = 100_000  # sent events that are remembered, so that repeats are not sent
SLOT_S: Final = 10.0  # then the event is sent anyway: a slot may be deleted for good


class ReceivedMessage(NamedTuple):
    offset: int
    message: Fact | LifecycleEvent


class Announced(NamedTuple):
    key: str
    event: StatusEvent


@dataclass(frozen=True, slots=True)
class SlotPosition:
    """The position that Redis has of a pipeline: the facts below `position`."""

    position: int
    pipeline: str


class SlotPositions(Protocol):
    def position_of(self, tenant: str, pipeline_uid: str) -> SlotPosition | None:
        """Return what Redis has; None if it has no slot with a definition. Raises Retryable."""


class EventSession(Protocol):
    """A member of the consumer group with its own producer. Each call raises Retryable; then a new
    member starts where the last transaction ended."""

    def receive(self) -> Sequence[ReceivedMessage]: ...

    def send(self, announced: Sequence[Announced]) -> None:
        """Send these events and commit the offsets of all messages read, in one transaction."""


class EventSessions(Protocol):
    def begin(self) -> AbstractContextManager[EventSession]: ...


class Announcer:
    def __init__(self, sessions: EventSessions, positions: SlotPositions, source: str) -> None:
        self._sessions = sessions
        self._positions = positions
        self._source = source
        self._sent: dict[str, None] = {}

    @contextmanager
    def run_in_thread(self) -> Iterator[None]:
        """Run in a thread of its own. Whatever is slow or fails here, facts are applied
        meanwhile."""
        stop = threading.Event()
        thread = threading.Thread(target=self.run, args=(stop,), name="events", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with self._sessions.begin() as session:
                    while not stop.is_set():
                        self._send_next(session)
            except Retryable as error:
                logger.warning("no events are sent for now", extra={"reason": str(error)})
            except Exception:  # the thread's boundary: facts are applied all the same
                logger.exception("sending events has failed")
            stop.wait(RETRY_S)

    def _send_next(self, session: EventSession) -> None:
        received = session.receive()
        if not received:
            return
        deadline = time.monotonic() + SLOT_S
        news: dict[str, list[Announced]] = {}
        for one in received:
            event_id = id_of(one.message)
            if event_id is not None and event_id not in news and not self._knows(event_id):
                news[event_id] = [*self._events_of(one, event_id, deadline)]
        session.send([each for announced in news.values() for each in announced])
        self._sent |= dict.fromkeys(news)
        while len(self._sent) > SENT_MAX:
            del self._sent[next(iter(self._sent))]

    def _knows(self, id: str) -> bool:
        """Return True if the event was sent. An event that is repeated often is remembered the
        longest."""
        if id not in self._sent:
            return False
        del self._sent[id]
        self._sent[id] = None
        return True

    def _events_of(
        self, received: ReceivedMessage, id: str, deadline: float
    ) -> Iterator[Announced]:
        message = received.message
        if isinstance(message, LifecycleEvent):
            events = of_lifecycle(message, id=id, source=self._source)
        elif is_old(message):
            return
        else:
            name = self._await_slot(message, received.offset, deadline)
            events = of_fact(message, id=id, pipeline=name, source=self._source)
        for event in events:
            yield Announced(message.pipeline_uid, event)

    def _await_slot(self, fact: Fact, offset: int, deadline: float) -> str | None:
        """Wait until the slot has the fact, and return the name of its pipeline. After the deadline
        return what is known by then."""
        while True:
            found = self._positions.position_of(fact.tenant, fact.pipeline_uid)
            if (found is not None and found.position > offset) or time.monotonic() > deadline:
                return None if found is None else found.pipeline
            time.sleep(LOOK_S)
