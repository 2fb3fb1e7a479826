"""Follows a token over server-sent events, resuming where a dropped connection left off.

Never reports an event twice, never ends before a final outcome without an error.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from waybill.connection import Connection, Question
from waybill.errors import NoAnswer, NotReady, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.outcomes import Outcome
from waybill.tokens import not_final, outcome_in
from waybill.waiting import Patience

EVENT_BYTES_MAX = 4_000_000  # an outcome with thousands of dead letters is still far below
SILENCE_S_MAX = 45.0  # without even a comment for so long, the connection counts as dead
SILENCE_S_MIN = 1.0  # an answer that is on its way is still taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event."""

    name: str
    data: str
    id: str | None


def events(pieces: Iterable[bytes]) -> Iterator[Event | None]:
    """The events in a stream of bytes, and None for each comment (the server is alive).

    An event that the stream's end cuts off is dropped, as the standard wants it.
    """
    name, data, event_id = "message", list[str](), None
    for line in _lines(pieces):
        if line.startswith(":"):
            yield None
        elif line == "":
            if data:
                yield Event(name=name, data="\n".join(data), id=event_id)
            name, data = "message", []
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "id":
                event_id = value


def follow(connection: Connection, path: str, patience: Patience) -> Iterator[Outcome]:
    """Every outcome from now on, until a final one; raises when the patience is over."""
    told = _Told()
    while True:
        failure: Unreachable | NotReady = _ended_early(connection)
        try:
            yield from _one_connection(connection, path, patience, told)
            if told.last is not None and told.last.final:
                return
        except (Unreachable, NotReady) as error:
            failure = error
        unknown = outcome_in(failure)
        if unknown is not None:
            told.last = unknown
            yield unknown
        waited = unknown is not None or isinstance(failure, NoAnswer)
        if waited and patience.over and told.last is not None:
            raise not_final(told.last) from failure
        if not connection.heard:
            raise failure
        patience.endure(failure)


@dataclass(slots=True)
class _Told:
    """What has been passed on, over all connections of one `follow`."""

    last: Outcome | None = None
    last_id: str | None = None


def _one_connection(
    connection: Connection, path: str, patience: Patience, told: _Told
) -> Iterator[Outcome]:
    headers = {"Accept": "text/event-stream"}
    if told.last_id is not None:
        headers["Last-Event-ID"] = told.last_id
    question = Question(method="GET", path=path, headers=headers)
    silence_s = min(SILENCE_S_MAX, max(patience.left_s, SILENCE_S_MIN))
    with connection.listen(question, silence_s=silence_s) as pieces:
        for event in events(pieces):
            if event is not None and event.name == "outcome" and _new(event, told):
                patience.settled()
                told.last_id = event.id
                told.last = Outcome.read(Fields(_json(event), f"an event of {path}"))
                yield told.last
                if told.last.final:
                    return
            if patience.over and told.last is not None:
                raise not_final(told.last)


def _new(event: Event, told: _Told) -> bool:
    return event.id is None or event.id != told.last_id


def _json(event: Event) -> object:
    try:
        return json.loads(event.data)
    except ValueError as error:
        raise UnexpectedAnswer(f"an outcome event is not JSON: {error}") from error


def _ended_early(connection: Connection) -> NoAnswer:
    url = connection.target.url
    return NoAnswer(f"{url} ended the event stream before a final outcome", url=url)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > EVENT_BYTES_MAX:
            raise UnexpectedAnswer(f"an event is larger than {EVENT_BYTES_MAX} bytes")
        for line in whole:
            yield line.removesuffix(b"\r").decode("utf-8", errors="replace")
