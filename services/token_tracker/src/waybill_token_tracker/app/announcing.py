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
from waybill_shared.contract.events import Fact, LifecycleEvent
from waybill_shared.contract.status_events import StatusEvent
from waybill_token_tracker.core.announcements import id_of, is_old, of_fact, of_lifecycle

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
LOOK_S: Final = 0.02  # between two looks at a slot
TOLD_MAX: Final = 100_000  # sent events that are remembered, so that repeats are not sent
SLOT_S: Final = 10.0  # then the event is sent anyway: a slot may be deleted for good


class HeardMessage(NamedTuple):
    offset: int
    message: Fact | LifecycleEvent


class Announced(NamedTuple):
    key: str
    event: StatusEvent


@dataclass(frozen=True, slots=True)
class SlotStanding:
    """What Redis has of a pipeline: the facts below `position`."""

    position: int
    pipeline: str


class Standings(Protocol):
    def standing(self, tenant: str, pipeline_uid: str) -> SlotStanding | None:
        """Return what Redis has; None if it has no slot with a definition. Raises Retryable."""
        ...


class Hearing(Protocol):
    """A member of the consumer group with its own producer. Each call raises Retryable; then a new
    member starts where the last transaction ended."""

    def hear(self) -> Sequence[HeardMessage]: ...

    def tell(self, announced: Sequence[Announced]) -> None:
        """Send these events and commit the offsets of all messages read, in one transaction."""
        ...


class Hearings(Protocol):
    def begin(self) -> AbstractContextManager[Hearing]: ...


class Announcer:
    def __init__(self, hearings: Hearings, standings: Standings, source: str) -> None:
        self._hearings = hearings
        self._standings = standings
        self._source = source
        self._told: dict[str, None] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
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
                with self._hearings.begin() as hearing:
                    while not stop.is_set():
                        self._turn(hearing)
            except Retryable as error:
                logger.warning("nothing is told for now", extra={"reason": str(error)})
            except Exception:  # the thread's boundary: facts are applied all the same
                logger.exception("telling has failed")
            stop.wait(RETRY_S)

    def _turn(self, hearing: Hearing) -> None:
        heard = hearing.hear()
        if not heard:
            return
        deadline = time.monotonic() + SLOT_S
        news: dict[str, list[Announced]] = {}
        for one in heard:
            told = id_of(one.message)
            if told is not None and told not in news and not self._knows(told):
                news[told] = [*self._announced(one, told, deadline)]
        hearing.tell([each for announced in news.values() for each in announced])
        self._told |= dict.fromkeys(news)
        while len(self._told) > TOLD_MAX:
            del self._told[next(iter(self._told))]

    def _knows(self, id: str) -> bool:
        """Return True if the event was sent. An event that is repeated often is remembered the
        longest."""
        if id not in self._told:
            return False
        del self._told[id]
        self._told[id] = None
        return True

    def _announced(self, heard: HeardMessage, id: str, deadline: float) -> Iterator[Announced]:
        message = heard.message
        if isinstance(message, LifecycleEvent):
            told = of_lifecycle(message, id=id, source=self._source)
        elif is_old(message):
            return
        else:
            name = self._when_it_stands(message, heard.offset, deadline)
            told = of_fact(message, id=id, pipeline=name, source=self._source)
        for event in told:
            yield Announced(message.pipeline_uid, event)

    def _when_it_stands(self, fact: Fact, offset: int, deadline: float) -> str | None:
        """Wait until the slot has the fact, and return the name of its pipeline. After the deadline
        return what is known by then."""
        while True:
            found = self._standings.standing(fact.tenant, fact.pipeline_uid)
            if (found is not None and found.position > offset) or time.monotonic() > deadline:
                return None if found is None else found.pipeline
            time.sleep(LOOK_S)
