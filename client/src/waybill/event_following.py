"""Follows the events of waybill.status, and continues after the last one when a stream breaks."""

import json
from collections.abc import Iterator
from typing import Final

from waybill.connection import Line
from waybill.errors import NotReady, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.questions import Question
from waybill.sse import EventReader, ServerEvent
from waybill.watches import Event

CUT: Final = "waybill.cut"
SILENCE_S_MAX: Final = 45.0  # the service says every 15 s how far it is
AGAIN_S: Final = 1.0


class EventFollowing:
    """A stream that does not end: the events in each piece, and when to connect again.

    It connects after the last event, so that none is missed and none comes twice.
    """

    def __init__(self, line: Line, question: Question, after: str | None) -> None:
        self._line = line
        self._question = question
        self._position = after
        self._events = EventReader()

    def question(self) -> Question:
        self._events = EventReader()
        headers = {"Accept": "text/event-stream"}
        if self._position is not None:
            headers["Last-Event-ID"] = self._position
        asked = self._question
        return Question(method="GET", path=asked.path, params=asked.params, headers=headers)

    def read(self, piece: bytes) -> Iterator[Event]:
        for event in self._events.read(piece):
            if event is None:
                continue
            self._position = event.id or self._position
            if event.name != CUT:
                yield Event.read(_fields(event, self._question.path), self._position)
        self._position = self._events.last_id or self._position

    def pause_after(self, failure: Unreachable | NotReady | None) -> float:
        """Return how long to wait before the next connection; raise if nothing has ever
        answered."""
        if failure is not None and not self._line.has_answered:
            raise failure
        return AGAIN_S


def _fields(event: ServerEvent, path: str) -> Fields:
    try:
        return Fields(json.loads(event.data), f"an event of {path}")
    except ValueError as error:
        raise UnexpectedAnswer(f"an event of {path} is not JSON: {error}") from error
