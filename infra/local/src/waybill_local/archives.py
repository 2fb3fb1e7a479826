"""Class-data archives, with which a JVM starts in about half the time.

A broker without an archive records one, which its JVM writes as it ends; it is used from then on.
That of Spark is made by a process of its own, once for all environments of this user.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waybill_local.folders import cache_folder
from waybill_local.java import Java
from waybill_shared.process.archives import archive_of, class_path

DUMP_TIMEOUT_S = 60
SPARK_TIMEOUT_S = 600  # half a minute on two quiet cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive of one program; `recording` is where this run writes it if there is none."""

    path: Path

    @property
    def recording(self) -> Path:
        return self.path.with_suffix(f".{os.getpid()}.part")

    def options(self) -> tuple[str, ...]:
        """JVM options for this run."""
        if self.path.is_file():
            return (f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return (f"-XX:ArchiveClassesAtExit={self.recording}", "-Xlog:cds=off")

    def keep(self, *, good: bool) -> None:
        """After the JVM's end: use what a good run recorded, throw away what a bad one left."""
        if not self.recording.is_file():
            return
        if good:
            self.recording.rename(self.path)
        else:
            self.recording.unlink()


def ensure_default(java: Java) -> None:
    """Give the wheel's Java the archive of its own classes that other distributions ship.

    The archives of programs build on it: without it they are silently not made.
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
    """Make the archive of Spark's classes if there is none, in half a minute; `on_work` is called
    before, and every second. Return False if that failed: drivers start without it, only later."""
    ensure_default(java)
    if archive_of(folder(), java.path, class_path(jars)).exists():
        return True
    on_work()
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
        process.kill()  # its JVM ends with it, and what it has written until then is dropped
        process.wait()


def folder() -> Path:
    return cache_folder() / "archives"


def archive(name: str, java: Java, jars: Path) -> Archive:
    """The archive for the program `name` on this Java with this set of jars."""
    key = f"{java.path.resolve()} {java.version} {jars.name}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Archive(path=folder() / f"{name}-{digest}.jsa")
