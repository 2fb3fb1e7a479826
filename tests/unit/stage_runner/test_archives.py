"""Which class archive a driver takes: one of the very Java and jars that it has."""

import os
from pathlib import Path

import pytest

from waybill_shared.process.archives import archive_of, remove_older


@pytest.fixture
def java(tmp_path: Path) -> Path:
    java = tmp_path / "java"
    java.write_text("17")
    return java


def jars_in(folder: Path) -> list[Path]:
    folder.mkdir()
    jar = folder / "spark.jar"
    jar.write_text("classes")
    os.utime(jar, ns=(1, 1))
    return [jar]


def test_the_same_files_have_the_same_archive(tmp_path: Path, java: Path) -> None:
    jars = jars_in(tmp_path / "jars")
    assert archive_of(tmp_path, java, jars) == archive_of(tmp_path, java, jars)


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
    for archive in found:
        archive.touch()
    remove_older(found[-1], jars)
    assert sorted(tmp_path.glob("*.jsa")) == sorted([kept, found[-1]])
