"""Properties that somebody gave a table or a catalog's answer: they choose no code, endpoint, keys
or signer, and no file is written outside of the warehouse."""

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update import SetLocationUpdate
from ruamel.yaml import YAML

from builders import make_fence
from integration.spark.iceberg_sinks import (
    NAME,
    SCHEMA,
    as_rows,
    as_table,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_shared.contract.manifest.model import Sink
from waybill_spark.sinks.contract import WantedSink
from waybill_spark.sinks.iceberg.connection import Reached
from waybill_spark.sinks.iceberg.executors import SpreadFiles
from waybill_spark.sinks.iceberg.file_access import (
    CODE,
    FOLDERS,
    OF_CATALOG,
    OPTIONS,
    OutsideWarehouse,
    WarehouseFileIO,
    options,
)
from waybill_spark.sinks.iceberg.loader import LOADER, IcebergLoader
from waybill_spark.sinks.iceberg.rest import OF_SERVER
from waybill_spark.sinks.iceberg.tasks import compact, remove_orphans
from waybill_spark.tracking.distributed_rows import Share

CORPUS: Final[dict[str, Any]] = YAML(typ="safe").load(
    Path(__file__).parents[2] / "iceberg_properties.yaml"
)
MODULE: Final = "code_of_a_stranger"
TRAP: Final = """
from pathlib import Path

MARK = Path({mark!r})
MARK.write_text("imported")


class Trap:
    def __init__(self, *given):
        MARK.write_text(f"called with {{given}}")
"""
EVIL: Final = "http://127.0.0.1:9"
PATHS: Final = ("write.data.path", "write.metadata.path")
HARMFUL: Final = ("code", "reached", "stores", "folders", "encryption")
REFUSED: Final = [name for kind in HARMFUL for name in CORPUS["refused"][kind]]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that is there once a stranger's code was imported."""
    (tmp_path / "code").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "code" / f"{MODULE}.py").write_text(TRAP.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield mark
    sys.modules.pop(MODULE, None)


def strange() -> dict[str, str]:
    """All names of the corpus that a manifest may not set, with values that would do harm."""
    trap = f"{MODULE}.Trap"
    names = [name for name in REFUSED if name not in PATHS]
    found = {name: EVIL if "." in name or name in ("uri", "url") else trap for name in names}
    code = [name for name in names if "impl" in name.lower() or name in CORPUS["refused"]["code"]]
    flags = [name for name in names if name.startswith("write.object-storage.")]
    return {**found, **dict.fromkeys(code, trap), **dict.fromkeys(flags, "true")}


def spoil(folder: Path, properties: dict[str, str]) -> None:
    """Set properties as somebody does who has the catalog."""
    with loaded(local(folder)).transaction() as change:
        change.set_properties(properties)


def move(folder: Path, key: str, to: Path) -> None:
    """Name another folder, as plain PyIceberg does, which then writes metadata there."""
    uri, place = f"sqlite:///{folder / 'catalog.db'}", f"file://{folder / 'warehouse'}"
    with closing(SqlCatalog("lakehouse", uri=uri, warehouse=place)) as catalog:
        change = catalog.load_table(NAME).transaction()
        if key == "location":
            change._stage((SetLocationUpdate(location=f"file://{to}"),))
        else:
            change.set_properties({key: f"file://{to}"})
        change.commit_transaction()


def outside(folder: Path) -> set[str]:
    """Names of files that are in none of the folders where something may be written."""
    inside = ("warehouse", "served", "code")
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in files if path.parts[0] not in inside}


def checked(folder: Path, connections: dict[str, Any], connection: str = "lakehouse") -> None:
    """What `waybill check` asks of the sink's table."""
    raw = {"name": "lake", "iceberg": {"connection": connection, "table": NAME}}
    where = places(folder, connections)
    LOADER.check(
        WantedSink(sink=Sink.model_validate(raw), pipeline_uid="uid", places=where), SCHEMA
    )


def places(folder: Path, connections: dict[str, Any]) -> SinkPlaces:
    file = folder / "connections.yaml"
    file.write_text(json.dumps(connections))
    return SinkPlaces(lakehouse_folder=folder, connections_file=file)


def test_no_property_of_a_table_is_imported_called_or_followed(tmp_path: Path, mark: Path) -> None:
    opened(local(tmp_path)).write(as_rows(1), make_fence(sequence=0))
    before = outside(tmp_path)
    spoil(tmp_path, strange())
    catalog = local(tmp_path)
    sink = opened(catalog, target(mode="upsert", keys=["order_id"]))
    for sequence in range(1, 8):
        sink.write(as_rows(sequence), make_fence(sequence=sequence))
    compact(loaded(catalog), 10_000_000, dry_run=False)
    remove_orphans(loaded(catalog), 10**14, dry_run=False)
    table = loaded(catalog)
    assert numbers_in(catalog) == [*range(1, 8)]
    assert table.properties["py-io-impl"] == f"{MODULE}.Trap"  # it is there, and nobody follows
    assert set(table.io.properties) == {CODE, FOLDERS}
    assert type(table.io) is WarehouseFileIO
    assert not mark.exists()
    assert MODULE not in sys.modules
    assert outside(tmp_path) == before


def test_properties_that_come_between_reading_and_commit_are_not_followed(
    tmp_path: Path, mark: Path
) -> None:
    catalog = local(tmp_path)
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    spoil(tmp_path, strange())
    sink.write(as_rows(2), make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 2]
    assert not mark.exists()


def test_executors_follow_no_property_of_a_table(tmp_path: Path, mark: Path) -> None:
    opened(local(tmp_path))
    spoil(tmp_path, strange())
    table = loaded(local(tmp_path))
    files = SpreadFiles(cast(Any, None), Reached("sink lake", "here"), make_fence(sequence=0))
    there = files._there(table.metadata, table.io, None, with_snapshot=False)
    metadata, io = pickle.loads(pickle.dumps(there)).open()
    share = Share(task=0, attempt=0, rows=as_rows(1))
    (file,) = there.write(there.writer(metadata, io, share), as_table(1))
    assert type(io) is WarehouseFileIO
    assert file.file_path.startswith(f"file://{tmp_path}/warehouse/raw/orders/")
    assert not mark.exists()


@pytest.mark.parametrize("key", [*PATHS, "location"])
def test_a_folder_outside_of_the_warehouse_is_refused_and_nothing_is_written_there(
    tmp_path: Path, key: str
) -> None:
    """By a check, by a sink that begins, and by maintenance. One that has begun already writes
    where the table was, or not at all."""
    sink = opened(local(tmp_path))
    sink.write(as_rows(1), make_fence(sequence=0))
    elsewhere = tmp_path / "elsewhere"
    move(tmp_path, key, elsewhere)
    before = outside(tmp_path)
    settings = target(maintenance={"removeOrphans": {}}).settings
    wanted: list[Callable[[], object]] = [
        lambda: checked(tmp_path, {}),
        lambda: opened(local(tmp_path)),
        lambda: kept(tmp_path, settings),
    ]
    for act in wanted:
        with pytest.raises(UserError, match="outside of the warehouse") as refused:
            act()
        (problem,) = refused.value.problems
        assert problem.message.startswith(f"sink lake: table {NAME}: ")
        assert "`folders` of the connection" in problem.hint
    with suppress(UserError):
        sink.write(as_rows(2), make_fence(sequence=1))
    assert outside(tmp_path) - {"connections.yaml"} == before


def test_the_location_of_a_namespace_is_no_way_out_of_the_warehouse(tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path}/elsewhere"
    local(tmp_path).tables.create_namespace("raw", {"location": elsewhere})
    outside = f"{elsewhere}.* is outside of the warehouse"
    with pytest.raises(UserError, match=outside):
        checked(tmp_path, {})
    with pytest.raises(UserError, match=outside):
        opened(local(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


def kept(folder: Path, settings: IcebergSinkSettings) -> None:
    sink = Sink.model_validate({"name": "lake", "iceberg": {"table": NAME}})
    wanted = WantedSink(
        sink=sink.model_copy(update={"settings": settings}),
        pipeline_uid="uid",
        places=places(folder, {}),
    )
    IcebergLoader().maintain(wanted, dry_run=False)


def test_files_of_this_machine_are_neither_read_nor_deleted_for_a_table(tmp_path: Path) -> None:
    file = tmp_path / "private"
    file.touch()
    io = loaded_io(tmp_path)
    for location in (
        f"file://{file}",
        str(file),
        f"file:{file}",
        f"{tmp_path}/warehouse/../private",
    ):
        with pytest.raises(OutsideWarehouse):
            io.new_input(location)
        with pytest.raises(PermissionError):
            io.delete(location)
    (tmp_path / "warehouse" / "link").symlink_to(tmp_path)
    with pytest.raises(OutsideWarehouse):
        io.new_output(f"file://{tmp_path}/warehouse/link/x")
    assert file.exists()


def loaded_io(folder: Path) -> WarehouseFileIO:
    opened(local(folder))
    io = loaded(local(folder)).io
    assert isinstance(io, WarehouseFileIO)
    return io


@pytest.mark.parametrize(
    ("folders", "location", "has"),
    [
        (["s3://lake/tables"], "s3://lake/tables/raw/x", True),
        (["s3://lake/tables"], "s3a://lake/tables/raw/x", True),
        (["s3://lake/tables"], "S3://lake/tables/raw/x", True),
        (["s3://lake/tables"], "s3://lake/tables2/x", False),
        (["s3://lake/tables"], "s3://other/tables/x", False),
        (["s3://lake/tables"], "s3://other/../lake/tables/x", False),
        (["s3://lake/tables"], "s3://lake/tables/../x", False),
        (["s3://lake/tables"], "gs://lake/tables/x", False),
        (["s3://lake/tables"], "file:///lake/tables/x", False),
        (["s3://lake/tables"], "/lake/tables/x", False),
        (["s3://lake/tables"], "lake/tables/x", False),
        (["s3://lake", "gs://more/x"], "gs://more/x/y", True),
        (["hdfs://name/lake"], "hdfs://other/lake/x", False),
        (["hdfs://name/lake"], "hdfs://name/lake/x", True),
        ([], "s3://anywhere/x", True),
        ([], "/anywhere/x", False),
        ([], "file:/anywhere/x", False),
        (["file:///"], "/anywhere/x", True),
    ],
)
def test_which_places_are_in_the_folders(folders: list[str], location: str, *, has: bool) -> None:
    assert WarehouseFileIO(options(folders)).has(location) is has


def test_a_table_of_a_catalog_without_folders_has_its_own() -> None:
    io = WarehouseFileIO(options([])).only_in("s3://lake/raw/orders")
    assert io.has("s3://lake/raw/orders/data/x")
    assert not io.has("s3://lake/raw/payments/data/x")
    assert WarehouseFileIO(options([])).only_in("/etc").folders == ()


def test_the_page_names_all_that_a_rest_catalog_may_say() -> None:
    page = (Path(__file__).parents[3] / "docs/iceberg.md").read_text()
    assert {name for name in OF_SERVER if f"`{name}`" not in page} == set()


def test_what_an_access_to_files_is_made_of_names_no_code() -> None:
    names = {name for name in strange() if name in OPTIONS}
    assert names - {CODE} == {*OF_CATALOG, "s3.connect-timeout", "s3.request-timeout"}
    io = WarehouseFileIO({**strange(), CODE: "x.Y"})
    assert not {name for name in io.properties if "impl" in name or "signer" in name} - {CODE}
