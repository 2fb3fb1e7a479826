"""Decides what one `follow` of a token does with the pieces of an event stream.

The caller sends `question()` and passes each piece of the stream to `Following.read`, which yields
each new outcome. After a final outcome the `follow` has `ended`. If the connection ends before
that, the caller yields the outcome of `unknown_in`, if there is one, and sleeps for `pause_after`.
The next `question()` has the id of the last event, so the server continues after it. An event that
comes again is left out.

When the time is over, `read` and `pause_after` raise StillInProgress or StillUnknown. Never reports
an event twice, never ends before a final outcome without an error.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from waybill.connection import Line
from waybill.errors import NoAnswer, NotReady, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.outcomes import Outcome, not_final, outcome_in
from waybill.questions import Question
from waybill.waiting import Patience

EVENT_BYTES_MAX = 4_000_000  # an outcome with thousands of dead letters is still far below
SILENCE_S_MAX = 45.0  # without even a comment for so long, the connection counts as dead
SILENCE_S_MIN = 1.0  # an answer that is on its way is still accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One server-sent event."""

    name: str
    data: str
    id: str | None


class EventReader:
    """A parser of event streams; an event that the end of the stream cuts off is dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._next_id: str | None = None
        self._begin()

    @property
    def last_id(self) -> str | None:
        """The last id, also one without an event."""
        return self._id

    def read(self, piece: bytes) -> Iterator[ServerEvent | None]:
        """Yield the events that end in this piece, and None for each comment (the server is
        alive)."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > EVENT_BYTES_MAX:
            raise UnexpectedAnswer(f"an event is larger than {EVENT_BYTES_MAX} bytes")
        for raw in lines:
            line = raw.removesuffix(b"\r").decode("utf-8", errors="replace")
            if line.startswith(":"):
                yield None
            elif line:
                self._take(line)
            else:
                self._id = self._next_id
                if self._data:
                    yield ServerEvent(name=self._name, data="\n".join(self._data), id=self._id)
                self._begin()

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id":
            self._next_id = value

    def _begin(self) -> None:
        self._name = "message"
        self._data: list[str] = []
        self._next_id = self._id  # which counts from the end of its event on


class Following:
    """One `follow`: what each piece contains, and what to do when a connection ends.

    The module says who calls what, and in which order.
    """

    def __init__(self, line: Line, path: str, patience: Patience) -> None:
        self._line = line
        self._path = path
        self._patience = patience
        self._events = EventReader()
        self._last: Outcome | None = None
        self._last_id: str | None = None

    def has_ended(self) -> bool:
        """Return True if the final outcome was reported."""
        return self._last is not None and self._last.final

    def question(self) -> Question:
        """Return the question of the next connection, which starts after the last reported
        event."""
        self._events = EventReader()
        headers = {"Accept": "text/event-stream"}
        if self._last_id is not None:
            headers["Last-Event-ID"] = self._last_id
        return Question(method="GET", path=self._path, headers=headers)

    @property
    def silence_s(self) -> float:
        return min(SILENCE_S_MAX, max(self._patience.left_s, SILENCE_S_MIN))

    def read(self, piece: bytes) -> Iterator[Outcome]:
        """Yield what is new in this piece; raise when the patience is over."""
        for event in self._events.read(piece):
            if event is not None and event.name == "outcome" and self._new(event):
                self._patience.reset()
                self._last_id = event.id
                self._last = Outcome.read(Fields(_json(event), f"an event of {self._path}"))
                yield self._last
                if self._last.final:
                    return
            if self._patience.over and self._last is not None:
                raise not_final(self._last)

    def early_end(self) -> NoAnswer:
        url = self._line.target.url
        return NoAnswer(f"{url} ended the event stream before a final outcome", url=url)

    def unknown_in(self, failure: Unreachable | NotReady) -> Outcome | None:
        """Return the outcome `unknown`, if that is what the failure says."""
        unknown = outcome_in(failure)
        self._last = unknown or self._last
        return unknown

    def pause_after(self, failure: Unreachable | NotReady) -> float:
        """Return how long to wait before the next connection; raise when there should be none."""
        waited = isinstance(failure, NoAnswer) or outcome_in(failure) is not None
        if waited and self._patience.over and self._last is not None:
            raise not_final(self._last) from failure
        if not self._line.has_answered:
            raise failure
        return self._patience.endure(failure)

    def _new(self, event: ServerEvent) -> bool:
        return event.id is None or event.id != self._last_id


def _json(event: ServerEvent) -> object:
    try:
        return json.loads(event.data)
    except ValueError as error:
        raise UnexpectedAnswer(f"an outcome event is not JSON: {error}") from error
