"""How a Postgres is reached, and what its errors mean to a pipeline."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.databases import CONNECT_TIMEOUT_S, SILENCE_S, PostgresConnection
from waybill_spark.tracking.sink import RowsRefused, SinkUnreachable

IDLE_IN_TRANSACTION_S: Final = 30  # so long a driver that hangs may hold a lock
IDLE: Final = "SET LOCAL idle_in_transaction_session_timeout = '{}'"
PATIENCE: Final = "SET LOCAL lock_timeout = '2s'"
"""The wait for a lock that shuts out readers. It is longer than `deadlock_timeout`, after which a
vacuum gives way."""

Session = psycopg.Connection[tuple[Any, ...]]

ROWS_HINT: Final = (
    "keep such rows away in the query, or change the table's rules; then start the pipeline:"
    " docs/connections.md"
)
ROWS: Final = ("22", "23")
AGAIN: Final = ("40",)
AWAY: Final = ("08", "25", "53", "55P03", "57", "58")
"""Classes of SQL states. 25: a server that only reads now, or a session that it ended. 55P03: a
lock that was not free in the time that its user has."""
RETRY_AFTER_S: Final = {"53100": 30.0, "53300": 5.0}
"""A full disk, and too many connections, are not over in half a second."""
REFUSED: Final = re.compile(
    r"password authentication failed|no pg_hba\.conf entry|does not exist|no password supplied"
    r"|certificate verify failed|server does not support SSL|permission denied",
    re.IGNORECASE,
)
"""Messages of a server that refuses a login: libpq passes on no SQL state for them."""


def connect(name: str, to: PostgresConnection, secret: str | None = None) -> Session:
    """Open a session in which nothing is committed before it is on disk.

    `secret`: its password, where that was read already.
    """
    if secret is None and to.password is not None:
        secret = to.password.read(name)
    try:
        return psycopg.connect(
            host=to.host,
            port=to.port,
            dbname=to.database,
            user=to.user,
            password=secret,
            sslmode=to.sslmode,
            sslrootcert=None if to.root_certificate is None else str(to.root_certificate),
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="waybill",
            keepalives_idle=SILENCE_S // 3,
            keepalives_interval=SILENCE_S // 3,
            keepalives_count=2,
            tcp_user_timeout=SILENCE_S * 1000,
            options="-c synchronous_commit=on -c client_encoding=UTF8"
            r" -c default_transaction_isolation=read\ committed"
            f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_S}s",
            autocommit=True,
        )
    except psycopg.Error as error:
        said = _first_line(error)
        message = f"connection {name}: {to.place} cannot be reached: {said}"
        if REFUSED.search(said):
            hint = "mend the connection's file, or the server's users; then start the pipeline"
            raise UserError([Problem(message=message, hint=hint)]) from None
        hint = f"see that Postgres answers at {to.place}; it is tried again"
        raise SinkUnreachable(message, hint=hint) from None


@contextmanager
def translate_errors(what: str, place: str) -> Iterator[None]:
    """Convert errors of the server: either the rows, the world or a person is the cause."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, what, place) from error


def translate(error: psycopg.Error, what: str, place: str) -> Exception:
    state = error.sqlstate or "08000"
    message = f"{what}: {_first_line(error)}"
    if state.startswith(ROWS):
        detail = _detail(error)
        return RowsRefused(f"{message}; {detail}" if detail else message, hint=ROWS_HINT)
    if state.startswith((*AWAY, *AGAIN)):
        hint = f"see that Postgres at {place} answers and may be written to; it is tried again"
        retry_after_s = RETRY_AFTER_S.get(state, 0)
        return SinkUnreachable(message, hint=hint, retry_after_s=retry_after_s)
    hint = error.diag.message_hint or _detail(error)
    hint = hint or f"mend the table, or what its user may do, SQL state {state}; then start again"
    return UserError([Problem(message=message, hint=hint)])


def is_conflict(error: psycopg.Error) -> bool:
    """Return True if the same transaction may well succeed at once."""
    return (error.sqlstate or "").startswith(AGAIN)


def _first_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    return said.splitlines()[0]


def _detail(error: psycopg.Error) -> str:
    return error.diag.message_detail or ""
