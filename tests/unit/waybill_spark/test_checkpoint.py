"""Spark's checkpoint files, in the very form in which it writes them."""

from pathlib import Path

import pytest

from waybill_spark.tracking.checkpoint import Checkpoint, CheckpointDamaged, stop_after_commit
from waybill_spark.tracking.local_files import LocalFiles

DAMAGED_LINES = ['{"a":{"0":', '{"a":[1]}', '{"a":{"x":1}}', '{"a":{"0":null}}', "7", ""]
HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795251600000,"conf":{}}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text('{"id":"7f1a2b3c-0000-4000-8000-000000000001"}')
    return tmp_path


def write_offsets(folder: Path, batch_id: int, *sources: str) -> None:
    (folder / "offsets" / str(batch_id)).write_text("\n".join((HEAD, *sources)))


def write_initial(folder: Path, source: int, text: str) -> None:
    (folder / "sources" / str(source)).mkdir(parents=True)
    (folder / "sources" / str(source) / "0").write_text(text)


def test_lineage_is_the_id_that_spark_gave(folder: Path) -> None:
    assert Checkpoint(LocalFiles(folder)).lineage() == "7f1a2b3c-0000-4000-8000-000000000001"


def test_batch_ends_where_its_offsets_say_and_starts_where_the_last_one_ended(folder: Path) -> None:
    write_offsets(folder, 3, '{"orders.in":{"0":5,"1":7}}')
    write_offsets(folder, 4, '{"orders.in":{"0":6,"1":7,"2":1}}')
    assert Checkpoint(LocalFiles(folder)).ends(4) == {"orders.in": {0: 6, 1: 7, 2: 1}}
    assert Checkpoint(LocalFiles(folder)).starts(4) == {"orders.in": {0: 5, 1: 7}}


@pytest.mark.parametrize("begin", ["\0v1\n", "v1\n"], ids=["with a NUL byte", "without"])
def test_first_batch_starts_at_the_initial_offsets(folder: Path, begin: str) -> None:
    write_initial(folder, 0, begin + '{"orders.in":{"0":5}}')
    assert Checkpoint(LocalFiles(folder)).starts(0) == {"orders.in": {0: 5}}


def test_sources_of_one_topic_count_by_the_nearest_end_and_the_farthest_start(folder: Path) -> None:
    write_initial(folder, 0, 'v1\n{"a":{"0":1,"1":4}}')
    write_initial(folder, 1, 'v1\n{"b":{"0":2}}')
    write_initial(folder, 2, 'v1\n{"a":{"0":3,"1":2}}')
    write_offsets(folder, 0, '{"a":{"0":8,"1":9}}', '{"b":{"0":7}}', '{"a":{"0":9,"1":6}}')
    assert Checkpoint(LocalFiles(folder)).starts(0) == {"a": {0: 3, 1: 4}, "b": {0: 2}}
    assert Checkpoint(LocalFiles(folder)).ends(0) == {"a": {0: 8, 1: 6}, "b": {0: 7}}


def test_a_commit_is_awaited_while_the_query_runs(folder: Path) -> None:
    (folder / "commits").mkdir()
    looks = 0

    def is_running() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            (folder / "commits" / "4").touch()
        return True

    checkpoint = Checkpoint(LocalFiles(folder))
    assert checkpoint.await_commit(4, is_running)
    assert looks == 3
    assert checkpoint.await_commit(3, is_running), "a later one is there"
    assert checkpoint.await_commit(-1, is_running), "there was no batch"
    assert looks == 3
    assert not checkpoint.await_commit(5, lambda: False), "its query has ended"


class SlowQuery:
    """A query that notes the end of batch 4 when it is looked at for the third time."""

    def __init__(self, folder: Path) -> None:
        self._noted = folder / "commits" / "4"
        self._looks = 0
        self.had_noted: bool | None = None
        """If it had noted it when it was stopped."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        self._looks += 1
        if self._looks == 3:
            self._noted.touch()
        return True

    def stop(self) -> None:
        self.had_noted = self._noted.exists()


def test_a_query_is_stopped_when_the_end_of_its_batch_is_noted(folder: Path) -> None:
    (folder / "commits").mkdir()
    query = SlowQuery(folder)
    assert stop_after_commit(query, Checkpoint(LocalFiles(folder)), done=4)
    assert query.had_noted is True


def test_source_without_offsets_is_a_dash(folder: Path) -> None:
    write_offsets(folder, 0, "-", '{"a":{"0":8}}')
    assert Checkpoint(LocalFiles(folder)).ends(0) == {"a": {0: 8}}


def test_first_batch_without_initial_offsets_knows_no_starts(folder: Path) -> None:
    assert Checkpoint(LocalFiles(folder)).starts(0) == {}


@pytest.mark.parametrize(
    "text", ["", "{}", "v1", "v2\n{}\n{}", *(f"v1\n{{}}\n{line}" for line in DAMAGED_LINES)]
)
def test_damaged_offsets_are_named(folder: Path, text: str) -> None:
    (folder / "offsets" / "3").write_text(text)
    with pytest.raises(CheckpointDamaged, match="offsets/3"):
        Checkpoint(LocalFiles(folder)).ends(3)


def test_offsets_that_are_no_text_are_named(folder: Path) -> None:
    (folder / "offsets" / "3").write_bytes(b"v1\n\xff\xfe")
    with pytest.raises(CheckpointDamaged, match="offsets/3"):
        Checkpoint(LocalFiles(folder)).ends(3)


def test_missing_offsets_are_named(folder: Path) -> None:
    with pytest.raises(CheckpointDamaged, match=r"offsets/2: No such file"):
        Checkpoint(LocalFiles(folder)).starts(3)


def test_damaged_initial_offsets_are_named(folder: Path) -> None:
    write_initial(folder, 0, "\0v1\n{")
    with pytest.raises(CheckpointDamaged, match="sources/0/0"):
        Checkpoint(LocalFiles(folder)).starts(0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"id"'])
def test_damaged_metadata_is_named(folder: Path, text: str) -> None:
    (folder / "metadata").write_text(text)
    with pytest.raises(CheckpointDamaged, match="metadata"):
        Checkpoint(LocalFiles(folder)).lineage()


@pytest.mark.parametrize("batch_id", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize(
    ("newest", "took"),
    [('{"a":{"0":5}}', True), ('{"a":{"0":2,"1":0}}', False), ('{"a":{"0":', None)],
    ids=["records", "a partition came", "damaged"],
)
def test_whether_it_took_something_is_unknown_where_files_are_damaged(
    folder: Path, batch_id: int, newest: str, took: bool | None
) -> None:
    write_initial(folder, 0, 'v1\n{"a":{"0":2}}')
    write_offsets(folder, 0, '{"a":{"0":2}}')
    write_offsets(folder, batch_id, newest)
    (folder / "commits").mkdir()
    assert Checkpoint(LocalFiles(folder)).took_something() is False, "nothing is committed"
    for committed in range(batch_id + 1):
        (folder / "commits" / str(committed)).touch()
    assert Checkpoint(LocalFiles(folder)).took_something() is took
