"""Has the class archive made in the background, if there is none for this Java and these jars."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waybill_shared.contract.driver import SCRATCH
from waybill_shared.process.archives import archive_of, class_path
from waybill_stage_runner.adapters.groups import end_group, signal_group
from waybill_stage_runner.adapters.processes import remove_left
from waybill_stage_runner.settings import Settings

logger = logging.getLogger(__name__)


@contextmanager
def rehearsal(settings: Settings) -> Iterator[None]:
    """Make the archive while the runner runs.

    If the runner ends first, the work is stopped, and the next runner does it.
    """
    java, jars = settings.stage_runner_java, settings.stage_runner_spark_jars
    folder = settings.stage_runner_state_folder.resolve() / "rehearsal"
    remove_left(folder)
    archive = archive_of(settings.stage_runner_spark_archives, java, class_path(jars))
    if archive.exists():
        yield
        return
    process = _start(settings, folder)
    logger.info("class archive is being made", extra={"path": str(archive)})
    try:
        yield
    finally:
        signal_group(process.pid, signal.SIGKILL, whole=True)
        process.wait()
        end_group(process.pid)


def _start(settings: Settings, folder: Path) -> subprocess.Popen[bytes]:
    scratch = folder / SCRATCH
    scratch.mkdir(parents=True, exist_ok=True)
    paths = (
        settings.stage_runner_java,
        settings.stage_runner_spark_jars,
        settings.stage_runner_spark_archives,
    )
    with (folder / "rehearsal.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "waybill_spark.driver.rehearsal", *map(str, paths)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(scratch)},
            start_new_session=True,
        )
