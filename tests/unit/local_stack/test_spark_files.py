"""Spark's files come beside the start of a stack, which raises what keeps them from coming."""

from pathlib import Path

import pytest

from waybill_local import archives, jars
from waybill_local.errors import StackError
from waybill_local.java import Java
from waybill_local.reports import Report, ReportKind, one_at_a_time
from waybill_local.spark_files import SparkFiles

JAVA = Java(path=Path("java"), version="17", bundled=False)
GONE_S = 20.0


@pytest.fixture
def reports(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """What is reported; nothing is linked."""
    monkeypatch.setattr(jars, "link_pyspark", lambda wanted: None)
    return []


def test_what_is_here_already_is_present_without_a_word(
    reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    jars.jar_set(jars.SPARK).folder.mkdir(parents=True)
    monkeypatch.setattr(archives, "ensure_spark", lambda *_: True)
    files = SparkFiles(JAVA, reports.append)
    files.wait(GONE_S)
    assert files.present
    assert reports == []


@pytest.mark.parametrize("made", [True, False])
def test_jars_and_archive_are_reported_once(
    made: bool, reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(java: Java, folder: Path, on_work: object) -> bool:
        assert callable(on_work)
        on_work()
        on_work()
        return made

    monkeypatch.setattr(jars, "retrieve", lambda wanted, **_: wanted.folder)
    monkeypatch.setattr(archives, "ensure_spark", make)
    files = SparkFiles(JAVA, one_at_a_time(reports.append))
    files.wait(GONE_S)
    assert files.present
    assert [(report.name, report.kind) for report in reports] == [
        ("spark jars", ReportKind.READY),
        ("archive", ReportKind.WORKING),
        ("archive", ReportKind.READY if made else ReportKind.NOTE),
    ]


def test_what_kept_them_from_coming_is_raised_where_they_are_waited_for(
    reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StackError("no jars", why="no network", fix="check it")

    monkeypatch.setattr(jars, "retrieve", refuse)
    files = SparkFiles(JAVA, reports.append)
    files.wait(GONE_S)
    with pytest.raises(StackError, match="no jars"):
        assert files.present
