"""Beside a runner whose Java and jars have no class archive one is made, and ends with it."""

from pathlib import Path

import psutil

from integration.waiting import eventually
from waybill_local import jars
from waybill_local.java import find_java
from waybill_shared.process.archives import archive_of, class_path
from waybill_shared.settings.service import read_settings
from waybill_stage_runner.adapters.groups import groups_with
from waybill_stage_runner.adapters.rehearsal import rehearsal
from waybill_stage_runner.settings import Settings

WAIT_S = 120.0


def settings(folder: Path) -> Settings:
    given = read_settings(Settings)
    return given.model_copy(
        update={
            "stage_runner_state_folder": folder / "state",
            "stage_runner_java": find_java().path,
            "stage_runner_spark_jars": jars.jar_set(jars.SPARK).folder,
            "stage_runner_spark_archives": folder / "archives",
        }
    )


def test_it_runs_beside_the_runner_and_ends_with_it(tmp_path: Path) -> None:
    def javas() -> set[int]:
        """Groups with a JVM that writes into our folder."""
        return groups_with(lambda word: word.startswith(f"-XX:ArchiveClassesAtExit={tmp_path}"))

    with rehearsal(settings(tmp_path)):
        eventually(javas, within_s=WAIT_S)
    assert not javas()
    assert not list((tmp_path / "archives").glob("*.jsa"))


def test_with_an_archive_there_is_nothing_to_do(tmp_path: Path) -> None:
    given = settings(tmp_path)
    path = class_path(given.stage_runner_spark_jars)
    archive = archive_of(given.stage_runner_spark_archives, given.stage_runner_java, path)
    archive.parent.mkdir()
    archive.touch()
    before = psutil.Process().children()
    with rehearsal(given):
        assert psutil.Process().children() == before
