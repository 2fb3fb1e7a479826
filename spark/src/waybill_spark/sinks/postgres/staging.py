"""A second table, which executors fill with the rows of one big batch.

It is not logged: a crash of the server empties it, and the batch is done again. What a killed
driver has left is deleted when the next one claims the sink.
"""

import hashlib
import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import psycopg
from psycopg import sql

from waybill_shared.contract.errors import UserError
from waybill_shared.databases import PostgresConnection
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.postgres.connection import (
    IDLE,
    PATIENCE,
    Session,
    connect,
    translate_errors,
)
from waybill_spark.sinks.postgres.load import ATTEMPT, Room, columns_of_room, copy
from waybill_spark.sinks.postgres.tables import LOADS, PostgresTarget
from waybill_spark.tracking.distributed_rows import DistributedRows, Share
from waybill_spark.tracking.sink import SinkSuperseded, SinkUnreachable

logger = logging.getLogger(__name__)

NUMBERS: Final = 1 << 40  # of rows in a share
LEFT: Final = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """`schema` is where such tables are made, and `key` is the fence's."""

    target: PostgresTarget
    connection: PostgresConnection
    schema: str
    key: str

    def may_be_made(self, session: Session) -> bool:
        row = session.execute("SELECT has_schema_privilege(%s, 'CREATE')", (self.schema,))
        found = row.fetchone()
        return found is not None and bool(found[0])

    def clear(self, session: Session) -> None:
        """Delete the tables of earlier drivers of this sink.

        A later driver is refused by the fence.
        """
        for (name,) in session.execute(LEFT, (self.schema, self._prefix)).fetchall():
            self._drop(session, sql.Identifier(self.schema, name))

    @contextmanager
    def fill(
        self, session: Session, rows: DistributedRows, columns: Sequence[str], *, uid: str
    ) -> Iterator[tuple[Room, int]]:
        """Yield the filled table and how many rows there are."""
        name = sql.Identifier(self.schema, f"{self._prefix}{uuid.uuid4().hex[:8]}")
        session.execute(
            sql.SQL(
                "CREATE UNLOGGED TABLE {} AS SELECT {}, 0::bigint AS {} FROM {} WITH NO DATA"
            ).format(
                name,
                columns_of_room(self.target, columns),
                sql.Identifier(ATTEMPT),
                self.target.name,
            )
        )
        try:
            settings = self.target.settings
            secret = self.connection.password
            work = _Copy(
                target=self.target,
                connection=self.connection,
                secret=None if secret is None else secret.read(settings.connection),
                table=name,
                uid=uid,
            )
            copied = dict(rows.carry_out(work, lambda done: None))
            room, number = Room(name, tuple(copied)), sum(copied.values())
            self._refuse_less(session, room, number, rows.num_rows)
            yield room, number
        except (UserError, psycopg.errors.UndefinedTable):
            if not self._is_there(session, name):
                message = f"sink {self.target.sink}: its rows were removed by another"
                raise SinkSuperseded(message) from None
            raise
        finally:
            self._drop(session, name)

    def _is_there(self, session: Session, name: sql.Identifier) -> bool:
        row = session.execute("SELECT to_regclass(%s)", (name.as_string(),)).fetchone()
        return row is not None and row[0] is not None

    def _refuse_less(self, session: Session, room: Room, copied: int, wanted: int) -> None:
        row = session.execute(sql.SQL("SELECT count(*) FROM {}").format(room.rows)).fetchone()
        if row is None or not row[0] == copied == wanted:
            there = 0 if row is None else row[0]
            message = f"sink {self.target.sink}: of {wanted} rows of a batch, {there} are there"
            hint = "see whether the server or a topic was created again; it is tried again"
            raise SinkUnreachable(message, hint=hint)

    def _drop(self, session: Session, name: sql.Identifier) -> None:
        try:
            with session.transaction():
                session.execute(PATIENCE)  # an executor that hangs may hold it
                session.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
        except psycopg.Error as error:
            about = {"table": name.as_string(), "reason": str(error)}
            logger.info("a table of rows is left for the next driver", extra=about)

    @property
    def _prefix(self) -> str:
        return f"{LOADS}{hashlib.sha256(self.key.encode()).hexdigest()[:12]}_"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """Work of an executor: a transaction for each share, and what it copied in which attempt."""

    target: PostgresTarget
    connection: PostgresConnection
    secret: str | None = field(repr=False)
    table: sql.Identifier
    uid: str

    def __call__(self, share: Share) -> Iterator[tuple[int, int]]:
        settings = self.target.settings
        what = f"sink {self.target.sink}: table {settings.table}"
        first = share.task * NUMBERS
        with (
            connect(settings.connection, self.connection, self.secret) as session,
            translate_errors(what, self.connection.place),
            session.transaction(),
        ):
            session.execute(IDLE.format("0"))  # Spark may compute a part again
            copied = copy(
                session,
                self.target,
                share.rows,
                Room(self.table),
                attempt=share.attempt,
                first=first,
            )
            reach(f"{self.uid}.{self.target.sink}.in_share")
        yield share.attempt, copied
