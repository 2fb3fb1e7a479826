"""Watches and the events that they end with, as values. Never talks to anything."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from waybill.connection import Line
from waybill.errors import NotReady, UnexpectedAnswer, Unreachable
from waybill.fields import Fields, no_json
from waybill.outcomes import Outcome
from waybill.questions import Question
from waybill.sse import EventReader, ServerEvent

TOKEN_FINAL: Final = "waybill.token.final"
CUT: Final = "waybill.cut"
SILENCE_S_MAX: Final = 45.0  # the service says every 15 s that it lives
AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """`state`: open, told or closed. `ended_as`: the outcome that was told, or expired."""

    id: str
    state: str
    labels: Mapping[str, str]
    created_at: datetime | None
    expires_at: datetime | None
    told_at: datetime | None
    event_id: str | None
    ended_as: str | None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields) -> "Watch":
        labels = fields.mapping_or_none("labels") or {}
        return cls(
            id=fields.text("id"),
            state=fields.text("state"),
            labels={name: str(value) for name, value in labels.items()},
            created_at=fields.moment_or_none("created_at"),
            expires_at=fields.moment_or_none("expires_at"),
            told_at=fields.moment_or_none("told_at"),
            event_id=fields.text_or_none("event_id"),
            ended_as=fields.text_or_none("ended_as"),
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A CloudEvent of `waybill.status`; its `id` is the same however often it comes. `position`:
    where `events(after=…)` goes on behind it. `outcome`: of a token that is final."""

    id: str
    type: str
    subject: str
    time: datetime | None
    pipeline: str | None
    stage: str | None
    data: Mapping[str, object]
    position: str | None
    outcome: Outcome | None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, position: str | None) -> "Event":
        data = fields.object_or_none("data")
        outcome = None if data is None else data.object_or_none("outcome")
        return cls(
            id=fields.text("id"),
            type=fields.text("type"),
            subject=fields.text("subject"),
            time=fields.moment_or_none("time"),
            pipeline=fields.text_or_none("pipeline"),
            stage=fields.text_or_none("stage"),
            data={} if data is None else data.raw,
            position=position,
            outcome=None if outcome is None else Outcome.read(outcome),
            raw=fields.raw,
        )


class EventFollowing:
    """What to tell of each piece of a stream that does not end, and when to connect again: behind
    the last event, so that none is missed and none comes twice."""

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
        """How long to wait before the next connection; raises if there was never one."""
        if failure is not None and not self._line.heard:
            raise failure
        return AGAIN_S


def _fields(event: ServerEvent, path: str) -> Fields:
    try:
        return Fields(json.loads(event.data), f"an event of {path}")
    except ValueError as error:
        raise UnexpectedAnswer(f"an event of {path} is not JSON: {error}") from error
