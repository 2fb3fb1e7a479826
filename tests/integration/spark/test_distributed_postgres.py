"""Rows that executors put into Postgres: all of a batch or none, and nothing is left beside."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from builders import make_fence
from contracts.sink import SinkContract
from integration.spark import postgres_sinks
from integration.spark.distributed_tables import UPSERT, PostgresPlace, in_postgres, left, stored
from postgres import Database
from shares import Shares
from waybill_spark.sinks.postgres.staging import Staging
from waybill_spark.tracking.sink import RowsRefused, SinkSuperseded


@pytest.mark.parametrize("settings", [{}, UPSERT], ids=["append", "upsert"])
class TestPostgres(SinkContract):
    @pytest.fixture
    def place(self, postgres: Database, settings: dict[str, Any]) -> PostgresPlace:
        return PostgresPlace(postgres, settings)


def test_of_a_key_in_two_shares_the_later_row_wins(postgres: Database) -> None:
    rows = pa.table({"order_id": [1, 2, 1, 2], "customer": ["a", "b", "c", "d"]})
    postgres_sinks.opened(postgres, **UPSERT).write(Shares(rows), make_fence(sequence=0))
    assert stored(postgres) == [(1, "c"), (2, "d")]


def test_no_table_is_left_beside_the_one_that_was_filled(postgres: Database) -> None:
    sink = postgres_sinks.opened(postgres)
    sink.write(in_postgres(1, 2), make_fence(sequence=0))
    assert left(postgres) == []
    assert stored(postgres) == [(1, "ada"), (2, "ada")]


def test_what_a_killed_driver_left_goes_with_the_next_claim(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Staging, "_drop", lambda *_: None)
        postgres_sinks.opened(postgres).write(in_postgres(1), make_fence(sequence=0))
    assert len(left(postgres)) == 1

    other = replace(postgres_sinks.LIFE, fence_key="another")
    postgres_sinks.sink_of(postgres, life=other).claim()
    assert len(left(postgres)) == 1, "it is not the other's"
    postgres_sinks.opened(postgres)
    assert left(postgres) == []


def test_a_driver_whose_table_went_was_taken_over(postgres: Database) -> None:
    paused = postgres_sinks.opened(postgres)

    class Late(Shares):
        def answers(self, work: Any) -> Any:  # noqa: ANN401
            newer = postgres_sinks.opened(postgres)
            newer.write(in_postgres(1), make_fence(sequence=0))
            return super().answers(work)

    with pytest.raises(SinkSuperseded):
        paused.write(Late(pa.Table.from_batches(postgres_sinks.rows(1))), make_fence(sequence=0))
    assert stored(postgres) == [(1, "ada")]
    assert left(postgres) == []


def test_who_may_make_no_table_takes_the_rows_through_the_driver(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = postgres_sinks.opened(postgres)
    role = f"r{postgres.schema}"
    monkeypatch.setenv("WAYBILL_SECRET", "secret")
    postgres.ask(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    try:
        postgres.ask(f"GRANT USAGE ON SCHEMA {postgres.schema} TO {role}")
        postgres.ask(f"GRANT ALL ON ALL TABLES IN SCHEMA {postgres.schema} TO {role}")
        sink._connection = postgres.connection(user=role, password={"env": "WAYBILL_SECRET"})
        sink.claim()
        sink.last()
        rows = in_postgres(1, 2)
        sink.write(rows, make_fence(sequence=0))
        sink.close()
    finally:
        postgres.ask(f"DROP OWNED BY {role}")
        postgres.ask(f"DROP ROLE {role}")
    assert stored(postgres) == [(1, "ada"), (2, "ada")]
    assert rows.asked == 0


def test_a_row_that_postgres_refuses_leaves_nothing(postgres: Database) -> None:
    sink = postgres_sinks.opened(postgres)
    table = f'{postgres.schema}."Orders 1"'
    postgres.ask(f"ALTER TABLE {table} ADD CHECK (order_id < 100)")
    with pytest.raises(RowsRefused, match="violates check constraint"):
        sink.write(in_postgres(1, 100), make_fence(sequence=0))
    assert (stored(postgres), left(postgres)) == ([], [])
    assert sink.find_refusal(in_postgres(1)) is None
    assert sink.find_refusal(in_postgres(100)) is not None
