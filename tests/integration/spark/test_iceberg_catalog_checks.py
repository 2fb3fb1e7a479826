"""What a check tells of a catalog, and that it makes none."""

import json
import os
from pathlib import Path

import pytest

from integration.ingress.objects import BUCKET, ObjectStore
from integration.spark.catalog_servers import READER, Opened, Told, checked
from integration.spark.iceberg_sinks import (
    NAME,
    loaded,
    opened,
    target,
)
from integration.spark.rest_catalog import TOKEN
from postgres import Database
from waybill_shared.connections import main as check
from waybill_shared.contract.errors import UserError


def test_each_connection_can_be_tried(
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "connections.yaml"
    file.write_text(json.dumps({**told, "away": {**told["rest"], "uri": "http://127.0.0.1:9"}}))
    monkeypatch.setattr("sys.argv", ["connections", "check", "--file", str(file)])
    assert check() == 1
    out, err = capsys.readouterr()
    assert f"rest: Iceberg catalog at {told['rest']['uri']}, namespaces: 0\n" in out
    assert "connection away: http://127.0.0.1:9 cannot be reached" in err
    assert TOKEN not in out + err


def test_a_check_makes_no_catalog(
    told: Told, open_told: Opened, tmp_path: Path, postgres: Database
) -> None:
    postgres.ask("DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties")
    assert checked(told, "sql", tmp_path).alterations == ()
    assert postgres.ask("SELECT to_regclass('iceberg_tables')") == [(None,)]


@pytest.mark.parametrize("name", ["sql", "rest", "glue"])
def test_a_table_is_one_whatever_connection_leads_to_it(
    told: Told, open_told: Opened, tmp_path: Path, name: str
) -> None:
    told |= {"other": told[name], "elsewhere": {**told[name], "warehouse": f"s3://{BUCKET}/x"}}
    first, other = (checked(told, each, tmp_path).table for each in (name, "other"))
    assert first == other
    assert name == "rest" or checked(told, "elsewhere", tmp_path).table != first
    catalog = open_told(told, name)
    opened(catalog, target())
    made = [checked(told, each, tmp_path).table for each in (name, "other")]
    assert made == [str(loaded(catalog).metadata.table_uuid)] * 2
    if name == "glue":  # one for all tests
        catalog.tables.drop_table(NAME)


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("name", ["sql", "glue"])
def test_who_may_only_read_there_is_told_so_by_a_check(
    told: Told, open_told: Opened, tmp_path: Path, store: ObjectStore, name: str, *, is_made: bool
) -> None:
    catalog = open_told(told, name)
    if is_made:
        opened(catalog, target())
    checked(told, name, tmp_path)
    before = store.keys()
    os.environ[READER], key = store.reader_secret_key, store.reader_key
    reader = {**told["objects"], "accessKey": key, "secretKey": {"env": READER}}
    with pytest.raises(UserError, match=r"sink lake: table raw.orders .*ACCESS_DENIED") as refused:
        checked({**told, "objects": reader}, name, tmp_path)
    assert "or the rights at" in refused.value.problems[0].hint
    assert store.keys() == before
    if is_made and name == "glue":  # one for all tests
        catalog.tables.drop_table(NAME)


def test_a_folder_that_cannot_be_written_is_told_by_a_check(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    told["sql"] |= {"warehouse": f"{folder}/tables"}
    del told["sql"]["objects"]
    assert checked(told, "sql", tmp_path).alterations == ()
    assert not folder.exists()
    folder.touch()
    with pytest.raises(UserError, match=f"cannot be written to file://{folder}/tables"):
        checked(told, "sql", tmp_path)
