"""Tries a connection to a Postgres: whether it answers, takes writes, and can hold fences."""

from typing import Final

from waybill_shared.connections import Connections, Connector
from waybill_shared.databases import PostgresConnection
from waybill_spark.sinks.postgres.connection import connect, translate_errors
from waybill_spark.sinks.postgres.fences import refuse_no_place
from waybill_spark.tracking.sink import SinkUnreachable


class PostgresConnector:
    def reach(self, name: str, connections: Connections) -> str:
        to = connections.find(name, PostgresConnection)
        with translate_errors(f"connection {name}", to.place), connect(name, to) as session:
            row = session.execute(
                "SELECT current_setting('server_version'), pg_is_in_recovery()"
            ).fetchone()
            refuse_no_place(session, name, to.fences)
        assert row is not None
        version, reads_only = row
        if reads_only:
            message = f"connection {name}: {to.place} is a standby, which only reads"
            raise SinkUnreachable(message, hint="name the server that takes writes")
        return f"PostgreSQL {version} at {to.place}"


CONNECTOR: Final[Connector] = PostgresConnector()
