"""What a REST catalog says of a table: keys to its files are taken, all else is not followed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from builders import make_fence
from integration.spark.iceberg_sinks import (
    as_rows,
    loaded,
    numbers_in,
    opened,
)
from integration.spark.rest_catalog import TOKEN, RestServer, serving_catalog
from integration.spark.test_iceberg_strange_properties import EVIL, MODULE, TRAP, places, strange
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog, open_catalog
from waybill_spark.sinks.iceberg.file_access import (
    CODE,
    FOLDERS,
)
from waybill_spark.sinks.iceberg.rest import OF_SERVER


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that is there once a stranger's code was imported."""
    (tmp_path / "code").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "code" / f"{MODULE}.py").write_text(TRAP.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield mark
    sys.modules.pop(MODULE, None)


VENDED: Final = {
    "s3.access-key-id": "vended",
    "s3.secret-access-key": "vended",
    "s3.session-token": "vended",
    "s3.endpoint": "http://store.example",
}


@pytest.fixture
def rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    """A server whose every answer has all names that do harm, and keys for a table."""
    monkeypatch.setenv("WAYBILL_TEST_STRANGE_TOKEN", TOKEN)
    monkeypatch.setenv("WAYBILL_TEST_STRANGE_KEY", "own")
    with serving_catalog(tmp_path) as server:
        answer, harm = server.answer, strange()
        about = {name: value for name, value in harm.items() if name not in OF_SERVER}

        def spoilt(method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
            code, said = answer(method, path, body)
            if path.partition("?")[0].endswith("/config"):
                auth = {"auth": {"type": "custom", "impl": f"{MODULE}.Trap"}}
                return code, {"defaults": about, "overrides": {**about, **auth, **server.says}}
            if "config" in said:
                said["metadata"]["properties"] |= harm
                said["config"] = {**about, **VENDED}
            return code, said

        monkeypatch.setattr(server, "answer", spoilt)
        yield server


def through(rest: RestServer, folder: Path, **more: Any) -> OpenCatalog:  # noqa: ANN401
    lake = {
        "kind": "iceberg",
        "catalog": "rest",
        "uri": rest.uri,
        "token": {"env": "WAYBILL_TEST_STRANGE_TOKEN"},
        "folders": [str(folder / "served")],
        **more,
    }
    objects = {
        "kind": "s3",
        "endpoint": "http://own.example",
        "accessKey": "own",
        "secretKey": {"env": "WAYBILL_TEST_STRANGE_KEY"},
    }
    return open_catalog("lake", places(folder, {"lake": lake, "store": objects}), what="sink lake")


def test_a_rest_catalog_gives_keys_and_names_no_code(
    tmp_path: Path, mark: Path, rest: RestServer
) -> None:
    catalog = through(rest, tmp_path)
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    sink.write(as_rows(2), make_fence(sequence=1))
    given = loaded(catalog).io.properties
    assert {name: value for name, value in given.items() if name not in (CODE, FOLDERS)} == VENDED
    assert numbers_in(catalog) == [1, 2]
    assert not mark.exists()


def test_the_store_is_where_the_connection_says_it_is(tmp_path: Path, rest: RestServer) -> None:
    catalog = through(rest, tmp_path, objects="store")
    opened(catalog)
    given = loaded(catalog).io.properties
    assert (given["s3.endpoint"], given["s3.access-key-id"]) == ("http://own.example", "vended")


def test_a_catalog_that_sends_its_clients_elsewhere_is_refused(
    tmp_path: Path, rest: RestServer
) -> None:
    rest.says = {"uri": EVIL}
    with pytest.raises(UserError, match=f"sends its clients to {EVIL}"):
        through(rest, tmp_path)
