"""Following a token: the event stream as text, resuming it, and the deadline."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill import (
    Client,
    NotFound,
    OutcomeKind,
    StillInProgress,
    StillUnknown,
    UnexpectedAnswer,
    Unreachable,
)
from waybill.sse import EVENT_BYTES_MAX, EventReader, ServerEvent
from waybill.testing import ManualClock, Response, ScriptedServer, event_stream, problem

TOKEN_PATH = "/v1/tokens/wb1.abc"
STARTED = {"outcome": "in_progress", "version": 4}
HALF_DONE = {"outcome": "in_progress", "version": 7}
COMPLETE = {"outcome": "complete", "version": 9}
UNKNOWN = Response(status=503, json={"outcome": "unknown"}, headers={"Retry-After": "3"})


def events(pieces: Iterable[bytes]) -> Iterator[ServerEvent | None]:
    reader = EventReader()
    for piece in pieces:
        yield from reader.read(piece)


def test_an_event_has_name_data_and_id() -> None:
    stream = b"event: outcome\nid: 7\ndata: {}\n\n"
    assert list(events([stream])) == [ServerEvent(name="outcome", data="{}", id="7")]


def test_an_event_without_a_name_is_a_message_and_keeps_the_last_id() -> None:
    stream = b"id: 7\ndata: a\n\ndata:b\n\n"
    assert list(events([stream])) == [
        ServerEvent(name="message", data="a", id="7"),
        ServerEvent(name="message", data="b", id="7"),
    ]


def test_data_lines_are_joined_and_carriage_returns_dropped() -> None:
    assert list(events([b"data: a\r\ndata:  b\r\n\r\n"])) == [
        ServerEvent(name="message", data="a\n b", id=None)
    ]


def test_an_id_counts_from_the_end_of_its_event_on() -> None:
    """Else who goes on behind it would miss the event."""
    stream = b"event: a\nid: 1\ndata: x\n\nevent: b\ndata: y\nid: 2\n\nid: 3\n\n"
    for cut in range(len(stream) + 1):
        reader = EventReader()
        told = [each for each in reader.read(stream[:cut]) if each is not None]
        expected = "3" if cut == len(stream) else str(len(told)) if told else None
        assert reader.last_id == expected, stream[:cut]


def test_a_comment_is_told_as_a_sign_of_life() -> None:
    assert list(events([b": keep-alive\n\n"])) == [None]


def test_an_event_cut_off_by_the_end_is_dropped() -> None:
    assert list(events([b"data: whole\n\ndata: half"])) == [
        ServerEvent(name="message", data="whole", id=None)
    ]
    assert list(events([b"data: half\n"])) == []


def test_an_endless_line_is_refused() -> None:
    with pytest.raises(UnexpectedAnswer, match="larger than"):
        list(events([b"data: "] + [b"x" * 1_000_000] * (EVENT_BYTES_MAX // 1_000_000 + 1)))


@given(cuts=st.lists(st.integers(0, 80)), text=st.text(max_size=10))
def test_events_do_not_depend_on_how_the_bytes_arrive(cuts: list[int], text: str) -> None:
    data = repr(text)
    whole = f"event: outcome\nid: 1\ndata: {data}\n\n: c\n\ndata: \u2028é\n\n".encode()
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(places)]
    assert list(events(pieces)) == list(events([whole]))
    assert len(list(events(pieces))) == 3


def test_follow_yields_every_change_up_to_the_final_one(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(STARTED, HALF_DONE, COMPLETE))
    kinds = [outcome.kind.value for outcome in client.follow("wb1.abc")]
    assert kinds == ["in_progress", "in_progress", "complete"]
    assert server.requests[0].headers["accept"] == "text/event-stream"
    assert "last-event-id" not in server.requests[0].headers


def test_follow_resumes_after_a_dropped_connection(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer(
        "GET", TOKEN_PATH, event_stream(STARTED, HALF_DONE, cut=True), event_stream(COMPLETE)
    )
    versions = [outcome.raw["version"] for outcome in client.follow("wb1.abc")]
    assert versions == [4, 7, 9]
    assert server.requests[1].headers["last-event-id"] == "7"
    assert clock.slept == [0.1]


def test_an_event_resets_the_pauses(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    drops = [event_stream(cut=True), event_stream(STARTED, cut=True)]
    server.answer("GET", TOKEN_PATH, *drops, event_stream(COMPLETE))
    list(client.follow("wb1.abc"))
    assert clock.slept == [0.1, 0.1]


def test_follow_does_not_repeat_what_a_resumed_stream_begins_with(
    server: ScriptedServer, client: Client
) -> None:
    server.answer(
        "GET", TOKEN_PATH, event_stream(STARTED, cut=True), event_stream(STARTED, COMPLETE)
    )
    versions = [outcome.raw["version"] for outcome in client.follow("wb1.abc")]
    assert versions == [4, 9]


def test_follow_goes_on_when_the_server_ends_the_stream_early(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(STARTED), event_stream(COMPLETE))
    assert [outcome.raw["version"] for outcome in client.follow("wb1.abc")] == [4, 9]


def test_follow_ignores_events_of_other_names(server: ScriptedServer, client: Client) -> None:
    other = b"event: news\ndata: {}\n\n"
    stream = event_stream(COMPLETE)
    server.answer(
        "GET",
        TOKEN_PATH,
        Response(content=other + stream.content, content_type="text/event-stream; charset=utf-8"),
    )
    assert [outcome.kind.value for outcome in client.follow("wb1.abc")] == ["complete"]


def test_follow_yields_unknown_and_asks_again_after_retry_after(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, UNKNOWN, event_stream(COMPLETE))
    kinds = [outcome.kind for outcome in client.follow("wb1.abc")]
    assert kinds == [OutcomeKind.UNKNOWN, OutcomeKind.COMPLETE]
    assert clock.slept == [3.0]


def test_follow_that_ends_unknown_is_not_told_as_in_progress(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(STARTED), UNKNOWN)
    with pytest.raises(StillUnknown):
        list(client.follow("wb1.abc", timeout_s=5))


def test_follow_of_a_forged_token_is_not_found(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, problem(404, "no such token"))
    with pytest.raises(NotFound):
        list(client.follow("wb1.abc"))


def test_follow_refuses_an_answer_that_is_no_stream(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, Response(json=COMPLETE))
    with pytest.raises(UnexpectedAnswer, match="application/json"):
        list(client.follow("wb1.abc"))


def test_follow_refuses_an_event_that_is_not_json(server: ScriptedServer, client: Client) -> None:
    stream = Response(content=b"event: outcome\ndata: {\n\n", content_type="text/event-stream")
    server.answer("GET", TOKEN_PATH, stream)
    with pytest.raises(UnexpectedAnswer, match="not JSON"):
        list(client.follow("wb1.abc"))


def test_follow_gives_up_on_dropped_connections_at_its_deadline(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(STARTED, cut=True), event_stream(cut=True))
    with pytest.raises(Unreachable, match="broke"):
        list(client.follow("wb1.abc", timeout_s=5))


class Stream(httpx2.SyncByteStream):
    """A body made by a function."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()


def streaming(pieces: Callable[[], Iterator[bytes]], clock: ManualClock) -> Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        headers = {"Content-Type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Stream(pieces))

    return Client("http://waybill", transport=httpx2.MockTransport(answer), clock=clock)


def test_follow_ends_at_its_deadline_though_comments_keep_coming(clock: ManualClock) -> None:
    def pieces() -> Iterator[bytes]:
        yield event_stream(STARTED).content
        while True:
            clock.now += 10
            yield b": keep-alive\n\n"

    with streaming(pieces, clock) as client, pytest.raises(StillInProgress) as raised:
        list(client.follow("wb1.abc", timeout_s=60))
    assert raised.value.outcome.raw == STARTED
    assert clock.now == 60


def test_follow_reads_nothing_after_the_final_outcome(clock: ManualClock) -> None:
    def pieces() -> Iterator[bytes]:
        yield event_stream(COMPLETE).content
        raise AssertionError("read on after the final outcome")

    with streaming(pieces, clock) as client:
        assert [outcome.complete for outcome in client.follow("wb1.abc")] == [True]


def test_follow_that_hears_nothing_more_ends_with_the_last_outcome(clock: ManualClock) -> None:
    def pieces() -> Iterator[bytes]:
        yield event_stream(STARTED).content
        clock.now += 60
        raise httpx2.ReadTimeout("silence")

    with streaming(pieces, clock) as client, pytest.raises(StillInProgress):
        list(client.follow("wb1.abc", timeout_s=60))


def test_follow_fails_at_once_when_nothing_was_ever_there(clock: ManualClock) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with (
        Client("http://waybill", transport=httpx2.MockTransport(refuse), clock=clock) as client,
        pytest.raises(Unreachable, match="nothing listens"),
    ):
        list(client.follow("wb1.abc"))
    assert clock.slept == []
