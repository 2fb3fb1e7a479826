"""Downloads the JVM's jars with the Ivy that PySpark ships, and checks each against `jars.lock`.

Never resolves dependencies on a user's machine: the lock names every jar and its sha256.
To change a version, edit ROOTS and run `python -m waybill_local.get_jars lock`.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waybill_local import ivy
from waybill_local.errors import StackError
from waybill_local.folders import cache_folder
from waybill_local.java import Java, find_java
from waybill_shared.process.archives import links_of, used_jars

KAFKA = "kafka"
SPARK = "spark"
ICEBERG = "iceberg"
LOCK_FILE = Path(__file__).with_name("jars.lock")

# The broker's own dependencies are resolved when the lock is made. Spark's sets are complete:
# everything else that these jars name is among PySpark's own.
ROOTS: Mapping[str, tuple[str, ...]] = {
    KAFKA: (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
        "org.apache.logging.log4j:log4j-core:2.25.4",
    ),
    SPARK: (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
        "org.apache.spark:spark-avro_2.13:4.1.1",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
        "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",
    ),
    ICEBERG: (
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "org.xerial:sqlite-jdbc:3.54.1.0",
    ),
}
NEEDED = (KAFKA, SPARK)
"""The sets that a stack needs. ICEBERG is not among them: only tests and comparisons use it."""
RESOLVED_SETS = frozenset({KAFKA})


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One locked jar."""

    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """The jars of one process, and the folder where they are once they are downloaded."""

    name: str
    jars: tuple[Jar, ...]

    @property
    def folder(self) -> Path:
        text = "\n".join(f"{jar.coordinate} {jar.sha256}" for jar in self.jars)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return root() / f"{self.name}-{digest}"

    @property
    def present(self) -> bool:
        return self.folder.is_dir()

    @property
    def class_path(self) -> tuple[Path, ...]:
        """The jars in a fixed order: a class-data archive is valid for one order only."""
        return tuple(self.folder / jar.file_name for jar in self.jars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """`done` of `total` jars of a set are downloaded, `bytes` in all."""

    name: str
    done: int
    total: int
    bytes: int = 0

    @property
    def text(self) -> str:
        return f"{self.name} {self.done} of {self.total}, {self.bytes / 1e6:.0f} MB"


def root() -> Path:
    """Return the folder of all sets, also of those of other versions."""
    return cache_folder() / "jars"


def parse_lock(text: str) -> Mapping[str, JarSet]:
    """Return the sets of a lock file: `[set]` lines, each followed by `coordinate sha256` lines."""
    sets: dict[str, list[Jar]] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) == 1 and line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            sets[name] = []
        elif len(words) == 2 and words[0].count(":") == 2 and len(words[1]) == 64 and name:
            sets[name].append(Jar(coordinate=words[0], sha256=words[1]))
        else:
            raise ValueError(f"jars.lock line {number}: expected `coordinate sha256`, got {line!r}")
    return {name: JarSet(name=name, jars=tuple(jars)) for name, jars in sets.items()}


def jar_set(name: str) -> JarSet:
    """Return a set of the shipped lock."""
    return parse_lock(LOCK_FILE.read_text(encoding="utf-8"))[name]


def retrieve(wanted: JarSet, *, java: Java, progress: Callable[[Download], None]) -> Path:
    """Return the folder with the jars of `wanted`. Download them if they are not here yet."""
    if wanted.present:
        return wanted.folder
    try:
        with _only_one(wanted):
            if not wanted.present:
                _download(wanted, java, progress)
    except OSError as error:
        raise StackError(
            f"the jars cannot be kept in {root()}",
            why=error.strerror or str(error),
            fix="make room there, or set XDG_CACHE_HOME to a folder that you may write to",
        ) from error
    return wanted.folder


def retrieve_all(*, java: Java, progress: Callable[[Download], None]) -> Mapping[str, Path]:
    """Download the sets of a stack, one by one, and link PySpark's own jars next to Spark's."""
    folders = {name: retrieve(jar_set(name), java=java, progress=progress) for name in NEEDED}
    link_pyspark(jar_set(SPARK))
    return folders


def link_pyspark(wanted: JarSet) -> None:
    """Link PySpark's jars into the cache, so that all environments of one lock use one folder.

    Where links cannot be made, for example on another disk, each environment uses its own jars.
    """
    links = links_of(wanted.folder)
    if links.is_dir():
        return
    with (
        contextlib.suppress(OSError),
        _only_one(wanted),
        tempfile.TemporaryDirectory(dir=root(), prefix=".links-") as name,
    ):
        if not links.is_dir():
            made = Path(name) / links.name
            made.mkdir()
            for jar in used_jars():
                (made / jar.name).hardlink_to(jar)
            made.rename(links)


def check(wanted: JarSet, folder: Path) -> None:
    """Raise StackError unless `folder` has each jar of the lock, with its sha256."""
    for jar in wanted.jars:
        path = folder / jar.file_name
        if not path.is_file():
            raise StackError(
                f"jar {jar.coordinate} was not downloaded",
                why=f"Ivy ended without an error, but left no {jar.file_name}",
                fix="try again; with a site's own Ivy settings, see that its repository has it",
            )
        found = sha256(path)
        if found != jar.sha256:
            raise StackError(
                f"jar {jar.coordinate} is not the one that was locked",
                why=f"its sha256 is {found}, the lock says {jar.sha256}",
                fix="try again; if it stays, your mirror or proxy changes files: do not use them",
            )


def sha256(path: Path) -> str:
    """Return the sha256 of a file as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(wanted: JarSet, java: Java, progress: Callable[[Download], None]) -> None:
    for left in root().glob(f".{wanted.name}-*"):  # of a download that was killed
        shutil.rmtree(left, ignore_errors=True)
    ivy_cache = cache_folder() / "ivy" / wanted.name
    total = len(wanted.jars)
    with tempfile.TemporaryDirectory(dir=root(), prefix=f".{wanted.name}-") as name:
        work = Path(name)
        progress(Download(name=wanted.name, done=0, total=total))
        downloads = ivy.retrieve(
            [jar.coordinate for jar in wanted.jars],
            ivy.Run(java=java, cache=ivy_cache, work=work, transitive=False),
        )
        for done, _ in enumerate(downloads, start=1):
            size = sum(path.stat().st_size for path in ivy_cache.rglob("*.jar"))
            progress(Download(name=wanted.name, done=min(done, total), total=total, bytes=size))
        try:
            check(wanted, work / ivy.JARS)
        finally:
            # Good jars are a second copy now. Bad ones must not be used by the next run.
            shutil.rmtree(ivy_cache, ignore_errors=True)
        (work / ivy.JARS).rename(wanted.folder)
    size = sum(path.stat().st_size for path in wanted.class_path)
    progress(Download(name=wanted.name, done=total, total=total, bytes=size))


@contextmanager
def _only_one(wanted: JarSet) -> Iterator[None]:
    """Let one process at a time download this set. The others wait, and then find the jars."""
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f".{wanted.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_lock() -> None:
    """Download ROOTS, with dependencies for the sets in RESOLVED_SETS, and write the lock."""
    java = find_java()
    lines = [
        "# Made by `python -m waybill_local.get_jars lock`: every jar, and the sha256 it must have."
    ]
    for name, roots in ROOTS.items():
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            run = ivy.Run(
                java=java,
                cache=work / "cache",
                work=work,
                transitive=name in RESOLVED_SETS,
                pattern=ivy.BY_COORDINATE,
            )
            for coordinate in ivy.retrieve(roots, run):
                print(coordinate, file=sys.stderr)
            lines += ["", f"[{name}]", *_lock_lines(work / ivy.JARS)]
    partial = LOCK_FILE.with_suffix(".part")
    partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(partial, LOCK_FILE)


def _lock_lines(folder: Path) -> list[str]:
    found = {ivy.coordinate_of(path): path for path in folder.rglob("*.jar")}
    return [f"{coordinate} {sha256(found[coordinate])}" for coordinate in sorted(found)]
