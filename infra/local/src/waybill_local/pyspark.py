"""Builds PySpark once for this user, without unused parts, and links it into each environment.

Its source archive has 456 MB, and the jars are first in it: nothing less can be downloaded. A build
makes four copies of the jars, all in a folder that is removed. Imports the standard library alone:
it is used before anything is installed.
"""

import fcntl
import hashlib
import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waybill_local.folders import cache_folder
from waybill_shared.process.spark_jars import HIVE, UNUSED_FOLDERS, UNUSED_JARS, kept

ARCHIVE_MB: Final = 456
BUILT: Final = "built"
BUILD_CACHE: Final = "build"
PACKAGE: Final = "pyspark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The copy in the user's cache that serves all environments.

    `requirement` is the entry of a lock.
    """

    requirement: str

    @property
    def version(self) -> str:
        return self.requirement.partition("==")[2].split()[0]

    @property
    def folder(self) -> Path:
        text = f"{self.requirement} {UNUSED_JARS} {UNUSED_FOLDERS} {HIVE}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return cache_folder() / f"{PACKAGE}-{self.version}-{digest}"

    @property
    def facts(self) -> str:
        """The name of the folder that says what is installed."""
        return f"{PACKAGE}-{self.version}.dist-info"

    @property
    def present(self) -> bool:
        """True if it is in this environment, or can be linked into it."""
        return (site_packages() / self.facts).is_dir() or self.folder.is_dir()

    def keep(self, work: Path) -> None:
        """Move what was built below `work` into the cache, if anything was."""
        built = work / BUILT
        if not built.is_dir():
            return
        leave_out(built)
        shutil.rmtree(built / "bin", ignore_errors=True)
        _correct_record(built / self.facts / "RECORD")
        built.rename(self.folder)

    def link(self) -> None:
        """Link the copy into this environment, unless it has this version already."""
        site = site_packages()
        if (site / self.facts).is_dir():
            return
        for older in (*site.glob(f"{PACKAGE}-*.dist-info"), site / PACKAGE):
            remove(older)
        for name in (PACKAGE, self.facts):  # the facts last: with them it counts as installed
            partial = site / f".{name}.part"
            remove(partial)
            shutil.copytree(self.folder / name, partial, copy_function=_link_or_copy)
            partial.rename(site / name)


def build_options(work: Path) -> tuple[str, ...]:
    """Return options for uv, with which it builds below `work` and leaves nothing elsewhere.

    What PySpark needs is in the same lock. A wheel that is not compressed is built in 18 s instead
    of 48.
    """
    setting = f"{PACKAGE}:--build-option=--compression=stored"
    folders = "--cache-dir", str(work / BUILD_CACHE), "--target", str(work / BUILT)
    return "--no-deps", *folders, "--config-settings-package", setting


def measure_download_mb(work: Path) -> float | None:
    """Return how many MB of the archive are downloaded; None if it is not being downloaded."""
    cache = work / BUILD_CACHE
    if not cache.is_dir():
        return None
    size = sum(_size(Path(folder) / name) for folder, _, names in os.walk(cache) for name in names)
    return min(size / 1e6, ARCHIVE_MB)  # unpacked as it comes; jars take as much there


def _size(file: Path) -> int:
    """Return the size of a file, which uv may just have moved away."""
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0


def leave_out(built: Path) -> None:
    """Remove what nothing here uses."""
    for jar in (built / PACKAGE / "jars").glob("*.jar"):
        if not kept(jar.name):
            jar.unlink()
    for name in UNUSED_FOLDERS:
        remove(built / PACKAGE / name)


def site_packages() -> Path:
    """Return where packages of this environment are."""
    return Path(sysconfig.get_path("purelib"))


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def only_one() -> Iterator[None]:
    """Let one installation of this user run at a time. The next finds what the last has built."""
    with (cache_folder() / ".packages.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _correct_record(record: Path) -> None:
    """Let the list of files name those that are there."""
    lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
    root = record.parents[1]
    kept = [line for line in lines if (root / line.rsplit(",", 2)[0].strip('"')).exists()]
    record.write_text("".join(kept), encoding="utf-8")


def _link_or_copy(source: str, target: str) -> None:
    """Link a file, or copy it if that is not possible, as to another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
