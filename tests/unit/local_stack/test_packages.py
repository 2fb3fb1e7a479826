"""Packages of a clone: PySpark is built once, without what nothing uses, and nothing is left."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from waybill_local import packages, pyspark
from waybill_local.counting import CountingLine
from waybill_local.errors import StackError
from waybill_local.packages import Uv, failure, install, megabytes, split
from waybill_shared.process.spark_jars import used

LOCK = """anyio==4.16.0 \\
    --hash=sha256:aa
pyspark==4.1.3 \\
    --hash=sha256:bb
redis==8.1.0 \\
    --hash=sha256:cc
"""
KEPT = "spark-sql_2.13-4.1.3.jar"
LEFT_OUT = "spark-mllib_2.13-4.1.3.jar"
FakeUv = Callable[..., Uv]


@pytest.fixture
def site(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make an environment with that name the one in which packages are installed."""
    cache.mkdir(parents=True, exist_ok=True)

    def choose(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.setattr(pyspark, "site_packages", lambda: folder)
        return folder

    return choose


@pytest.fixture
def fake_uv(tmp_path: Path) -> FakeUv:
    """Acts for uv: counts its runs, builds a small PySpark where it is told to, may fail."""

    def make(*, code: int = 0, says: str = "", waits: bool = False) -> Uv:
        program = tmp_path / "uv"
        program.write_text(f"""#!{sys.executable}
import pathlib, sys, time
words = sys.argv
print("{says}", flush=True)
if "--target" in words:
    pathlib.Path("{tmp_path}", "builds").open("a").write("build\\n")
    target = pathlib.Path(words[words.index("--target") + 1])
    build = pathlib.Path(words[words.index("--cache-dir") + 1])
    for file in (build / "src.jar", target / "bin" / "pyspark",
                 target / "pyspark" / "jars" / "{KEPT}", target / "pyspark" / "jars" / "{LEFT_OUT}",
                 target / "pyspark" / "ml" / "tree.py", target / "pyspark" / "sql" / "types.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    facts = target / "pyspark-4.1.3.dist-info"
    facts.mkdir()
    facts.joinpath("RECORD").write_text(
        "pyspark/ml/tree.py,sha256=a,1\\npyspark/sql/types.py,sha256=b,1\\n"
        "bin/pyspark,sha256=c,1\\n")
time.sleep({60 if waits else 0})
sys.exit({code})
""")
        program.chmod(0o755)
        return Uv(program=program, build=tmp_path / "build.txt")

    return make


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.lock"
    path.write_text(LOCK)
    return path


def in_cache(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def test_pyspark_is_built_once_and_linked_without_what_nothing_uses(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path, cache: Path, tmp_path: Path
) -> None:
    one = site("one")
    install(fake_uv(), lock)
    other = site("other")
    install(fake_uv(), lock)
    install(fake_uv(), lock)
    assert (tmp_path / "builds").read_text() == "build\n"
    jars = [path.name for path in (other / "pyspark" / "jars").iterdir()]
    assert jars == [KEPT]
    assert not (one / "pyspark" / "ml").exists()
    assert (one / "pyspark/jars" / KEPT).samefile(other / "pyspark/jars" / KEPT)
    record = (one / "pyspark-4.1.3.dist-info" / "RECORD").read_text()
    assert record == "pyspark/sql/types.py,sha256=b,1\n"
    assert [name.rpartition("-")[0] for name in in_cache(cache)] == ["pyspark-4.1.3"]


def test_another_disk_gets_copies(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuse)
    one = site("one")
    install(fake_uv(), lock)
    assert (one / "pyspark" / "jars" / KEPT).read_text() == KEPT


def test_older_version_is_replaced(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path
) -> None:
    one = site("one")
    (one / "pyspark-4.0.0.dist-info").mkdir()
    (one / "pyspark" / "old").mkdir(parents=True)
    install(fake_uv(), lock)
    assert not (one / "pyspark" / "old").exists()
    assert [path.name for path in one.glob("*.dist-info")] == ["pyspark-4.1.3.dist-info"]


@pytest.mark.parametrize(
    ("says", "fix"),
    [
        ("error: Failed to fetch: dns error", "check the network"),
        ("error: write failed: No space left on device (os error 28)", "make room"),
        ("error: File too large (os error 27)", "ulimit -f"),
        ("error: Hash mismatch for `pyspark`", "do not use them"),
        ("error: Read-only file system (os error 30)", "XDG_CACHE_HOME"),
        ("error: Permission denied (os error 13)", "XDG_CACHE_HOME"),
    ],
)
def test_failure_says_what_to_do_and_leaves_nothing(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path, cache: Path, says: str, fix: str
) -> None:
    one = site("one")
    with pytest.raises(StackError) as raised:
        install(fake_uv(code=2, says=says), lock)
    assert fix in raised.value.fix
    assert raised.value.why == says
    assert in_cache(cache) == []
    install(fake_uv(), lock)
    assert (one / "pyspark" / "jars" / KEPT).exists()


def test_interruption_ends_uv_and_leaves_nothing(
    site: Callable[[str], Path],
    fake_uv: FakeUv,
    lock: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site("one")
    uv = fake_uv(waits=True)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    assert packages.main([str(uv.program), str(uv.build), str(lock)]) == 130
    assert "interrupted: run make again" in capsys.readouterr().err
    assert in_cache(cache) == []


def test_what_a_killed_installation_left_is_removed(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path, cache: Path
) -> None:
    site("one")
    (cache / ".packages-killed" / "built").mkdir(parents=True)
    install(fake_uv(), lock)
    assert len(in_cache(cache)) == 1


def test_cache_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert packages.main(["uv", "build.txt", "requirements.lock"]) == 1
    said = capsys.readouterr().err
    assert "XDG_CACHE_HOME" in said
    assert str(tmp_path / "file") in said


def test_lock_without_pyspark_builds_none(
    site: Callable[[str], Path], fake_uv: FakeUv, lock: Path, tmp_path: Path
) -> None:
    site("one")
    lock.write_text(split(LOCK)[0])
    install(fake_uv(), lock)
    assert not (tmp_path / "builds").exists()


def test_megabytes_are_those_that_uv_asks_for(tmp_path: Path) -> None:
    said = "Downloading a (2.0MiB)\nDownloading b (512.0KiB)\n Downloaded a\n"
    done, total = megabytes(said, tmp_path)
    assert (round(done, 2), round(total, 2)) == (2.10, 2.62)
    (tmp_path / pyspark.BUILD_CACHE).mkdir()
    (tmp_path / pyspark.BUILD_CACHE / "jar").write_bytes(bytes(1_000_000))
    done, total = megabytes("", tmp_path)
    assert (done, total) == (1.0, pyspark.ARCHIVE_MB)


def test_files_that_uv_moves_away_meanwhile_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / pyspark.BUILD_CACHE).mkdir()
    gone: list[tuple[str, list[str], list[str]]] = [
        (str(tmp_path / pyspark.BUILD_CACHE), [], ["gone.jar"])
    ]
    monkeypatch.setattr(os, "walk", lambda _: gone)
    assert pyspark.measure_download_mb(tmp_path) == 0


def test_failure_without_a_word_is_one_too() -> None:
    assert failure("").why == "uv said nothing"


def test_a_log_gets_the_begin_and_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    line = CountingLine("jars", "of kafka")
    line.show("3 of 46", 3 / 46)
    line.end("46 of kafka")
    begin, end = capsys.readouterr().out.splitlines()
    assert begin == "jars      of kafka"
    assert end.startswith("jars      46 of kafka  0.")


def test_a_terminal_gets_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    line = CountingLine("jars", "of kafka")
    line.show("23 of 46", 0.5)
    line.end("46 of kafka")
    said = capsys.readouterr().out
    assert f"[{'#' * 12}{'.' * 12}] 23 of 46" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "jar",
    [
        "hive-storage-api-2.8.1.jar",
        "spark-kubernetes_2.13-4.1.3.jar",
        "spark-yarn_2.13-4.1.3.jar",
        "commons-pool2-2.12.1.jar",
        "antlr4-runtime-4.13.1.jar",
    ],
)
def test_what_spark_or_a_setting_needs_stays(jar: str) -> None:
    assert used(jar)
