"""A PostgreSQL for tests: `DATABASE_URL`, else one that is started here, in a folder of its own.

It writes to the disk before it answers, as a real one does: what is proved here is what survives.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from waybill_local import postgres
from waybill_local.ports import HOST, pick
from waybill_local.processes import Child, start, stop, wait_ready
from waybill_local.stack import StackState
from waybill_shared.databases import PostgresConnection

DATABASE_URL = "DATABASE_URL"
PASSWORD = "WAYBILL_DATABASE_PASSWORD"


@dataclass(frozen=True, slots=True)
class Database:
    """A schema of its own in a database, which others may use too."""

    url: str
    schema: str
    opened: ExitStack = field(default_factory=ExitStack)
    """Closes what the test has opened, also where it failed."""

    @staticmethod
    def of(stack: StackState) -> "Database":
        """That of a local stack."""
        server = stack.postgres
        assert server is not None, "the stack of the tests has one"
        return Database(server.url, "public")

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as session:
            cursor = session.execute(query.encode(), values or None)
            return [*cursor.fetchall()] if cursor.description else []

    def connection(self, **other: object) -> PostgresConnection:
        return PostgresConnection.model_validate({**self.settings(), **other})

    def settings(self) -> dict[str, Any]:
        """As a file of connections has them; the password is in the environment."""
        told = conninfo_to_dict(self.url)
        os.environ[PASSWORD] = str(told.get("password") or "")
        return {
            "kind": "postgres",
            "host": told.get("host") or HOST,
            "port": int(told.get("port") or 5432),
            "database": told.get("dbname") or "postgres",
            "user": told.get("user") or "postgres",
            "password": {"env": PASSWORD},
            "schema": self.schema,
        }


@contextmanager
def database(url: str) -> Iterator[Database]:
    made = Database(url, f"t{uuid.uuid4().hex[:10]}")
    made.ask(f'CREATE SCHEMA "{made.schema}"')
    try:
        with made.opened:
            yield made
    finally:
        made.ask(f'DROP SCHEMA "{made.schema}" CASCADE')


@dataclass(slots=True)
class PostgresProcess:
    """A server that a test may kill, and start again with what it had written."""

    server: postgres.Server
    logs: Path
    child: Child | None = None

    def start(self) -> None:
        self.child = start(postgres.spec(self.server), self.logs)
        wait_ready([self.child], interrupted=lambda: False, on_ready=lambda child: None)

    def stop(self) -> None:
        if self.child is not None:
            stop([self.child], forced=lambda: False, on_stopped=lambda child, graceful: None)
        self.child = None

    def kill(self) -> None:
        """As a machine that loses its power: what was not on the disk is gone."""
        if self.child is not None:
            stop([self.child], forced=lambda: True, on_stopped=lambda child, graceful: None)
        self.child = None


@contextmanager
def postgres_process(folder: Path) -> Iterator[PostgresProcess]:
    port = pick({postgres.NAME: 0})[postgres.NAME]
    process = PostgresProcess(postgres.Server(folder / postgres.NAME, port), folder)
    process.start()
    try:
        yield process
    finally:
        process.stop()
