"""The file of connections: what is wrong in it is told with its place, and no secret ever is."""

from pathlib import Path
from typing import Final

import pytest

from waybill_shared import connections
from waybill_shared.connections import places_in, read_connections
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.databases import PostgresConnection

SECRET: Final = "hunter2"
GOOD: Final = """
warehouse:
  kind: postgres
  host: db.example
  database: shop
  user: waybill
  password: {env: WAYBILL_SECRET}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "connections.yaml"


def found(file: Path, text: str, name: str = "warehouse") -> PostgresConnection:
    file.write_text(text)
    return read_connections(file).find(name, PostgresConnection)


def problems(file: Path, text: str, name: str = "warehouse") -> tuple[Problem, ...]:
    with pytest.raises(UserError) as raised:
        found(file, text, name)
    return raised.value.problems


def test_a_connection_is_read_with_its_defaults(file: Path) -> None:
    connection = found(file, GOOD)
    assert (connection.place, connection.sslmode, connection.fences) == (
        "db.example:5432/shop",
        "prefer",
        "public",
    )


def test_the_password_is_read_when_it_is_used(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = found(file, GOOD)
    monkeypatch.setenv("WAYBILL_SECRET", SECRET)
    assert connection.password is not None
    assert connection.password.read("warehouse") == SECRET
    kept = tmp_path / "password"
    kept.write_text(SECRET + "\n")
    other = found(file, GOOD.replace("{env: WAYBILL_SECRET}", f"{{file: {kept}}}"))
    assert other.password is not None
    assert other.password.read("warehouse") == SECRET
    assert SECRET not in repr(other)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{env: WAYBILL_SECRET}", "the variable WAYBILL_SECRET is not set"),
        ("{file: /nowhere/at-all}", "/nowhere/at-all: No such file or directory"),
    ],
)
def test_a_password_that_is_not_there_is_told(file: Path, written: str, told: str) -> None:
    connection = found(file, GOOD.replace("{env: WAYBILL_SECRET}", written))
    assert connection.password is not None
    with pytest.raises(UserError, match=told):
        connection.password.read("warehouse")


def test_a_password_that_cannot_be_sent_is_in_no_error(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "password"
    kept.write_bytes(SECRET.encode() + b"\xff")
    monkeypatch.setenv("WAYBILL_SECRET", SECRET + "\udcff")
    for written in ("{env: WAYBILL_SECRET}", f"{{file: {kept}}}"):
        connection = found(file, GOOD.replace("{env: WAYBILL_SECRET}", written))
        assert connection.password is not None
        with pytest.raises(UserError, match="it is not text") as raised:
            connection.password.read("warehouse")
        assert SECRET not in repr(raised.value)


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        (GOOD.replace("host:", "hots:"), ":4:", "hots"),
        (GOOD.replace("  host: db.example\n", ""), ":2:", "host"),
        (GOOD.replace("db.example", "postgres://u@db"), ":4:", "an address with a password"),
        (GOOD.replace("shop", "host=db password=x"), ":5:", "an address with a password"),
        (GOOD.replace("WAYBILL_SECRET", "PGPASSWORD"), ":7:", "password.env"),
        (GOOD + "  port: 0\n", ":8:", "port"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(file: Path, text: str, place: str, told: str) -> None:
    messages = [problem.message for problem in problems(file, text)]
    assert any(f"{file}{place}" in message and told in message for message in messages)


def test_an_unknown_connection_names_the_known_ones(file: Path) -> None:
    (problem,) = problems(file, GOOD, "warehose")
    assert problem.message == "no connection is called 'warehose'"
    assert problem.hint.startswith("did you mean 'warehouse'?")


@pytest.mark.parametrize(
    "line",
    [
        f"  password: {SECRET}",
        f"  password:{SECRET}",
        f"  password: {{{SECRET}}}",
        f"  password: {{text: {SECRET}}}",
        f"  password: [{SECRET}]",
        f"  {SECRET}",
        f"  password: '{SECRET}",
        f"  host: postgres://waybill:{SECRET}@db",
    ],
)
def test_a_secret_that_stands_in_the_file_is_in_no_message(file: Path, line: str) -> None:
    text = GOOD.replace("  password: {env: WAYBILL_SECRET}", line).replace(
        "  host: db.example\n", ""
    )
    for problem in problems(file, text):
        assert SECRET not in problem.message + problem.hint


def test_check_tells_every_connection_and_ends_with_1_if_one_does_not_answer(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAYBILL_SECRET", SECRET)
    away = GOOD.replace("db.example", "127.0.0.1") + "  port: 1\n"
    file.write_text(away + "files:\n  kind: postgers\n")
    monkeypatch.setattr("sys.argv", ["connections", "check", "--file", str(file)])
    assert connections.main() == 1
    told = capsys.readouterr().err
    assert "connection warehouse: 127.0.0.1:1/shop cannot be reached" in told
    assert "see that Postgres answers at 127.0.0.1:1/shop" in told
    assert "connection files: its kind is none that is known" in told
    assert "did you mean 'postgres'?" in told
    assert SECRET not in told


ALIASES: Final = """
a: {kind: postgres, host: DB.example, database: shop, user: one}
b: {kind: postgres, host: db.example, port: 5432, database: shop, user: two, schema: fences}
c: {kind: postgres, host: db.example, port: 5433, database: shop, user: one}
rest: {kind: iceberg, catalog: rest, uri: "https://c.example/", warehouse: x}
also: {kind: iceberg, catalog: rest, uri: "https://c.example", warehouse: x, scope: read}
other: {kind: iceberg, catalog: rest, uri: "https://c.example", warehouse: y}
sql: {kind: iceberg, catalog: sql, database: a, warehouse: s3://one}
named: {kind: iceberg, catalog: sql, database: b, name: sql, warehouse: s3://two}
"""


def test_connections_that_lead_to_one_place_are_known(file: Path) -> None:
    file.write_text(ALIASES)
    places = places_in(file)
    same = {name: {n for n, place in places.items() if place == places[name]} for name in places}
    assert same["a"] == {"a", "b"}
    assert same["c"] == {"c"}
    assert same["rest"] == {"rest", "also"}
    assert same["other"] == {"other"}
    assert same["sql"] == {"sql", "named"}


@pytest.mark.parametrize("text", ["a: [", "- a", "a: {kind: none}", "a: {kind: s3}", "a: b", ""])
def test_what_says_no_place_leads_to_none(file: Path, text: str) -> None:
    file.write_text(text)
    assert places_in(file) == {}
    assert places_in(file.with_name("missing")) == places_in(None) == {}
