"""The Postgres sink: one transaction per batch holds the rows and the fence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

import psycopg
import pyarrow as pa
from psycopg import sql

from waybill_shared.contract.events import Fence, FieldMap
from waybill_shared.contract.words import StopReason
from waybill_shared.databases import PostgresConnection
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.postgres.connection import (
    IDLE,
    IDLE_IN_TRANSACTION_S,
    PATIENCE,
    Session,
    connect,
    is_conflict,
    translate,
    translate_errors,
)
from waybill_spark.sinks.postgres.fences import make_fences, move_fence, read_fence, refuse_no_place
from waybill_spark.sinks.postgres.fitting import plan_change
from waybill_spark.sinks.postgres.load import OWN, Room, copy, lock, make_room, take
from waybill_spark.sinks.postgres.staging import Staging
from waybill_spark.sinks.postgres.tables import PostgresTarget, add_columns, make_table
from waybill_spark.tracking.distributed_rows import DistributedRows
from waybill_spark.tracking.sink import (
    RowsRefused,
    SinkLife,
    SinkSuperseded,
    SinkUnreachable,
    Written,
)
from waybill_spark.tracking.stopping import StageStopped

TRIES: Final = 5  # of a transaction that another one was in the way of
T = TypeVar("T")


class PostgresSink:
    def __init__(
        self,
        life: SinkLife,
        target: PostgresTarget,
        connection: PostgresConnection,
        *,
        schema: pa.Schema | None,
    ) -> None:
        """Create the sink. Without a schema of its rows it is only closed: no table is made or
        looked at.
        """
        self.name = life.name
        self.since = life.since
        self.key = life.key
        self.moved = life.moved
        self._fence_key = life.fence_key
        self._target = target
        self._connection = connection
        self._schema = schema
        self._staging = Staging(
            target=target, connection=connection, schema=connection.fences, key=life.fence_key
        )
        self._session: Session | None = None
        self._seen: Fence | None = None

    def claim(self) -> None:
        """Connect and prepare. Nobody needs to be fenced: the fence moves only from where it was
        seen last.
        """
        self.close()
        self._session = connect(self._target.settings.connection, self._connection)
        self._ask(self._prepare)
        self._ask(self._staging.clear)

    def last(self) -> Written | None:
        self._seen = self._ask(lambda s: read_fence(s, self._connection.fences, self._fence_key))
        return None if self._seen is None else Written(fence=self._seen, version=self._version())

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        if isinstance(rows, DistributedRows) and self._ask(self._staging.may_be_made):
            with self._fill_staging(rows, fence.pipeline_uid) as (room, number):
                self._reach(fence, "after_copy")
                self._move(lambda: self._take(room, number), fence)
            self._seen = fence
            self._ask(self._staging.clear)
        else:
            self._move(lambda: self._load(rows, fence), fence)
            self._seen = fence
        return Written(fence=fence, version=self._version())

    @contextmanager
    def _fill_staging(self, rows: DistributedRows, uid: str) -> Iterator[tuple[Room, int]]:
        """Let executors fill a staging table."""
        assert self._schema is not None, "a sink without a schema takes no rows"
        session = self._current()
        with (
            translate_errors(self._what, self._connection.place),
            self._staging.fill(session, rows, self._schema.names, uid=uid) as filled,
        ):
            yield filled

    def _move(self, load: Callable[[], None], fence: Fence) -> None:
        for left in reversed(range(TRIES)):
            try:
                self._commit(load, fence)
                break
            except psycopg.Error as error:
                if left and is_conflict(error):
                    continue
                raise translate(error, self._what, self._connection.place) from error

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        def attempt(session: Session) -> None:
            with session.transaction(force_rollback=True):
                self._load(rows)
                session.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as a commit looks at them

        try:
            self._ask(attempt)
        except RowsRefused as refusal:
            return str(refusal)
        return None

    def await_visible(self, fence: Fence) -> bool:
        """Return True: a commit is visible as soon as it is answered."""
        return True

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    @property
    def _what(self) -> str:
        return f"sink {self.name}: table {self._target.settings.table}"

    def _current(self) -> Session:
        assert self._session is not None, "claim comes first"
        return self._session

    def _ask(self, question: Callable[[Session], T]) -> T:
        with translate_errors(self._what, self._connection.place):
            return question(self._current())

    def _prepare(self, session: Session) -> None:
        schema = self._connection.fences
        refuse_no_place(session, self._target.settings.connection, schema)
        make_fences(session, schema)
        if self._schema is None:
            return
        with session.transaction():
            lock(session, self._target)  # two that begin at once: one of them makes it
            alteration = plan_change(session, self._target, self._schema)
            if alteration.made:
                self._refuse_second_table(session)
                session.execute(make_table(self._target, self._schema))
            elif alteration.added:
                self._add_columns(session, alteration.added)
                plan_change(session, self._target, self._schema)  # a stranger may have been faster
        make_room(session, self._target, self._schema.names)

    def _add_columns(self, session: Session, added: Mapping[str, str]) -> None:
        """Add columns. While this waits for its lock, all who come later wait too, readers among
        them; so it does not wait for long.
        """
        session.execute(PATIENCE)
        try:
            session.execute(add_columns(self._target, added))
        except psycopg.errors.LockNotAvailable:
            said = f"{self._what}: others use it all the time, so it gets no {', '.join(added)}"
            raise SinkUnreachable(said, hint=f"{self._holders()}; it is tried again") from None

    def _holders(self) -> str:
        of = sql.Literal(self._target.name.as_string())
        query = sql.SQL("SELECT pid FROM pg_locks WHERE granted AND relation = {}::regclass")
        return f"end the transaction that holds it: {query.format(of).as_string()}"

    def _refuse_second_table(self, session: Session) -> None:
        """Refuse to make a table again that was dropped: it would seem to have all rows."""
        if read_fence(session, self._connection.fences, self._fence_key) is not None:
            detail = f"{self._what} was dropped, and its fence says that it may have rows"
            hint = "restore the table, or make an empty one; then start the pipeline"
            raise StageStopped(StopReason.CHECKPOINT_DIVERGED, detail, hint)

    def _commit(self, load: Callable[[], None], fence: Fence) -> None:
        session, schema = self._current(), self._connection.fences
        with session.transaction():
            load()
            if not move_fence(session, schema, self._fence_key, fence, seen=self._seen):
                raise SinkSuperseded(f"{self._what}: its fence was moved by another")
            self._reach(fence, "before_commit")

    def _load(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence | None = None) -> None:
        session = self._current()
        slow = isinstance(rows, DistributedRows)  # Spark is asked for each part of them
        if slow:
            session.execute(IDLE.format("0"))
        copied = copy(session, self._target, (each for each in rows or () if each.num_rows))
        if not copied:
            return
        if slow:
            session.execute(IDLE.format(f"{IDLE_IN_TRANSACTION_S}s"))
        if fence is not None:
            self._reach(fence, "after_copy")
        self._take(OWN, copied)

    def _take(self, room: Room, copied: int) -> None:
        assert self._schema is not None, "a sink without a schema takes no rows"
        inserted = take(self._current(), self._target, self._schema.names, room)
        if inserted not in (copied, None):
            message = f"{self._what}: it took {inserted} of {copied} rows"
            raise RowsRefused(message, hint="a trigger of the table leaves rows out; remove it")

    def _reach(self, fence: Fence, edge: str) -> None:
        reach(f"{fence.pipeline_uid}.{self.name}.{edge}")

    def _version(self) -> FieldMap:
        """Return the position of the log as a version.

        A replica has the batch when it has replayed this far. It may be more than the batch needs,
        because others may have written since.
        """
        try:
            row = self._current().execute("SELECT pg_current_wal_lsn()::text").fetchone()
        except psycopg.Error:
            return {}  # the batch is committed; the next one meets what is wrong
        return {} if row is None else {"postgres_lsn": str(row[0])}
