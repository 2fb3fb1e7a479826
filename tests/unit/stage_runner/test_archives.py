"""Which class archive a driver takes: one of the very Java and jars that it has."""

import os
from pathlib import Path

import pytest

from waybill_shared.process import archives
from waybill_shared.process.archives import archive_of, class_path, links_of, remove_older


@pytest.fixture
def java(tmp_path: Path) -> Path:
    java = tmp_path / "java"
    java.write_text("17")
    return java


def jars_in(folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    jar = folder / "spark.jar"
    jar.write_text("classes")
    os.utime(jar, ns=(1, 1))
    return [jar]


def test_the_same_files_have_the_same_archive(tmp_path: Path, java: Path) -> None:
    jars = jars_in(tmp_path / "jars")
    assert archive_of(tmp_path, java, jars) == archive_of(tmp_path, java, jars)


def test_environments_with_the_same_pyspark_have_one_class_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once PySpark's jars are linked next to Spark's connectors."""
    connectors = tmp_path / "cache" / "spark"
    jars_in(connectors)
    paths, links = [], []
    for name in ("one", "other", "older"):
        jars_in(own := tmp_path / name)
        (own / "spark.jar").write_text("older classes" if name == "older" else "classes")
        monkeypatch.setattr(archives, "pyspark_jars", lambda own=own: own)
        links.append(links_of(connectors))
        if name == "one":
            links[0].mkdir()
            (links[0] / "spark.jar").hardlink_to(own / "spark.jar")
        paths.append(class_path(connectors))
    assert links[0] == links[1] != links[2]
    assert paths[0] == paths[1] == [links[0] / "spark.jar", connectors / "spark.jar"]
    assert paths[2] == [tmp_path / "older" / "spark.jar", connectors / "spark.jar"]


def test_equal_jars_in_another_place_have_another(tmp_path: Path, java: Path) -> None:
    """As in the environment of another clone: a JVM refuses it."""
    one, other = jars_in(tmp_path / "one"), jars_in(tmp_path / "other")
    assert archive_of(tmp_path, java, one) != archive_of(tmp_path, java, other)


def test_files_that_were_replaced_have_another_and_the_old_one_goes(
    tmp_path: Path, java: Path
) -> None:
    jars, others = jars_in(tmp_path / "jars"), jars_in(tmp_path / "others")
    kept = archive_of(tmp_path, java, others)
    kept.touch()
    found = [archive_of(tmp_path, java, jars)]
    os.utime(jars[0], ns=(2, 2))
    found.append(archive_of(tmp_path, java, jars))
    java.write_text("17.0.1")
    found.append(archive_of(tmp_path, java, jars))
    assert len(set(found)) == 3
    for each in found:
        each.touch()
    remove_older(found[-1], jars)
    assert sorted(tmp_path.glob("*.jsa")) == sorted([kept, found[-1]])
