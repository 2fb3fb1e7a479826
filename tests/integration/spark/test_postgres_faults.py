"""A Postgres that is away, or was tampered with: the fence decides, and the words say who acts."""

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from select import select

import psycopg
import pytest
from psycopg import errors

from builders import make_fence
from integration.spark.postgres_sinks import UPSERT, opened, read, rows, sink_of
from integration.switches import Switch, cut, start
from postgres import Database
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.postgres.connection import translate
from waybill_spark.tracking.sink import SinkSuperseded, SinkUnreachable


def test_a_fence_that_somebody_removed_ends_the_writer(postgres: Database) -> None:
    sink = opened(postgres)
    sink.write(rows(1), make_fence(sequence=0))
    postgres.ask(f'DELETE FROM "{postgres.schema}".waybill_fences')
    with pytest.raises(SinkSuperseded):
        sink.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada")]


def test_a_session_that_the_server_ends_is_the_worlds_fault(postgres: Database) -> None:
    sink = opened(postgres)
    ended = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'waybill'"
    )
    assert postgres.ask(ended) != [(0,)]
    with pytest.raises(SinkUnreachable):
        sink.write(rows(1), make_fence(sequence=0))
    sink.claim()
    assert sink.last() is None
    sink.write(rows(1), make_fence(sequence=0))
    assert read(postgres) == [(1, "ada")]


def test_a_spoiled_fence_is_named(postgres: Database) -> None:
    opened(postgres).write(rows(1), make_fence(sequence=0))
    postgres.ask(f"UPDATE {postgres.schema}.waybill_fences SET body = '{{}}'")
    with pytest.raises(UserError, match="is spoiled: somebody has changed it"):
        opened(postgres)


def test_a_writer_from_before_a_restore_is_refused(postgres: Database) -> None:
    """The number of its batch is the same again; the claim is not."""
    paused = opened(postgres)
    first = make_fence(sequence=0)
    paused.write(rows(1), first)
    postgres.ask(f"DELETE FROM {postgres.schema}.waybill_fences")
    opened(postgres).write(rows(1), replace(first, epoch=first.epoch + 1))
    with pytest.raises(SinkSuperseded):
        paused.write(rows(2), make_fence(sequence=1))


def test_a_lock_that_does_not_come_in_time_is_waited_for_again(postgres: Database) -> None:
    sink = opened(postgres)
    assert sink._session is not None
    sink._session.execute("SET lock_timeout = '100ms'")
    with psycopg.connect(postgres.url) as other:
        other.execute(f'LOCK TABLE "{postgres.schema}"."Orders 1"'.encode())
        with pytest.raises(SinkUnreachable, match="lock timeout"):
            sink.write(rows(1), make_fence(sequence=0))


def test_a_wrong_password_is_the_users_to_mend_and_is_not_told(postgres: Database) -> None:
    sink = sink_of(postgres)
    sink._connection = postgres.connection(password={"env": "WAYBILL_SECRET"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAYBILL_SECRET", "not-the-one")
        with pytest.raises(UserError, match="password authentication failed") as raised:
            sink.claim()
    assert "not-the-one" not in str(raised.value)


def test_a_server_that_is_down_is_tried_again(postgres: Database) -> None:
    sink = sink_of(postgres)
    sink._connection = postgres.connection(port=1)
    with pytest.raises(SinkUnreachable, match="cannot be reached") as raised:
        sink.claim()
    assert "see that Postgres answers at" in raised.value.hint


def test_a_server_without_room_is_tried_again(postgres: Database) -> None:
    sink = opened(postgres, **UPSERT)
    assert sink._session is not None
    sink._session.execute("SET work_mem = '64kB'")
    sink._session.execute("SET temp_file_limit = '64kB'")
    with pytest.raises(SinkUnreachable, match="temporary file size exceeds"):
        sink.write(rows(*range(50_000)), make_fence(sequence=0))
    assert read(postgres) == []


@pytest.mark.parametrize(
    ("error", "retry_after_s"),
    [(errors.DiskFull("no space"), 30.0), (errors.AdminShutdown("ends"), 0.0)],
)
def test_what_the_server_lacks_is_waited_for(error: psycopg.Error, retry_after_s: float) -> None:
    told = translate(error, "sink warehouse: table public.orders", "db:5432/shop")
    assert isinstance(told, SinkUnreachable)
    assert told.retry_after_s == retry_after_s
    assert "see that Postgres at db:5432/shop answers and may be written to" in told.hint


class CutRoad(Switch):
    """Cuts the connection on which `words` are said to the server; before that, or just after."""

    def __init__(self, target: int, words: bytes, *, arrives: bool) -> None:
        super().__init__(target)
        self._words = words
        self._arrives = arrives
        self._last_words, self._done = threading.Event(), threading.Event()
        self.armed = False

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        start(self._ask, client, server)
        start(self._answer, server, client)

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, ValueError):  # the other thread has closed it
            while piece := client.recv(65_536):
                if self.armed and self._words in piece:
                    if self._arrives:
                        self._last_words.set()
                        server.sendall(piece)
                        self._done.wait(10.0)
                    break
                server.sendall(piece)
        cut(client)
        cut(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError, ValueError):  # the other thread has closed it
            while select([server], [], [], 10.0)[0] and (piece := server.recv(65_536)):
                if self._last_words.is_set():
                    break  # it is done, and the client never hears of it
                client.sendall(piece)
        self._done.set()


@pytest.mark.parametrize(
    ("words", "arrives", "done"),
    [
        (b"BEGIN", False, False),
        (b"COPY", False, False),
        (b"INSERT INTO", True, False),
        (b"COMMIT", False, False),
        (b"COMMIT", True, True),
    ],
)
def test_after_a_connection_is_cut_the_fence_decides(
    postgres: Database, words: bytes, arrives: bool, done: bool
) -> None:
    direct = postgres.connection()
    first = opened(postgres)
    first.write(rows(1), make_fence(sequence=0))
    with CutRoad(direct.port, words, arrives=arrives) as road:
        first._connection = direct.model_copy(update={"port": road.port, "sslmode": "disable"})
        first.claim()
        first.last()
        road.armed = True
        with pytest.raises(SinkUnreachable):
            first.write(rows(2), make_fence(sequence=1))
    after = opened(postgres)
    last = after.last()
    assert last is not None
    assert last.fence.batch.sequence == int(done)
    if not done:
        after.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada"), (2, "ada")]
