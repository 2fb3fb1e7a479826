"""Which class archive fits: with one Spark's JVM is there in half the time.

A JVM takes an archive for the very files that it was made of, and drops any other without a word.
So the name of an archive says of which Java and which jars it is.
"""

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from waybill_shared.process.spark_jars import used


def class_path(jars: Path) -> list[Path]:
    """List the jars of PySpark that drivers use, then those in `jars`, in a fixed order: an archive
    is for one only.

    Where `jars` has a neighbour with links to PySpark's jars, these are listed: one archive then
    serves every environment of this user.
    """
    links = links_of(jars)
    own = sorted(links.glob("*.jar")) if links.is_dir() else used_jars()
    return [*own, *sorted(jars.absolute().glob("*.jar"))]


def used_jars() -> list[Path]:
    """List those of PySpark's jars in this environment that drivers use."""
    return sorted(jar for jar in pyspark_jars().glob("*.jar") if used(jar.name))


def pyspark_jars() -> Path:
    """Return the folder of PySpark's jars in this environment."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"


def links_of(jars: Path) -> Path:
    """Return the folder next to `jars` that links PySpark's jars, if anybody has made it. Its name
    has their names and sizes, so that no environment uses those of another version."""
    own = (f"{jar.name} {jar.stat().st_size}" for jar in used_jars())
    return jars.absolute().parent / f"pyspark-{_digest(own)}"


def program(java: Path) -> Path:
    """Return the path of that Java.

    If there is none, return `java` as it was given: whoever starts it reports the error.
    """
    found = shutil.which(java)
    return java if found is None else Path(found).absolute()


def archive_of(folder: Path, java: Path, class_path: Sequence[Path]) -> Path:
    """Return where the archive for this Java with these jars is, or would be."""
    files = (program(java).resolve(), *class_path)
    return folder.absolute() / f"{_place(class_path)}{_digest(map(_version, files))}.jsa"


def remove_older(archive: Path, class_path: Sequence[Path]) -> None:
    """Remove the archives for other versions of Java or of the jars in the same places."""
    for other in archive.parent.glob(f"{_place(class_path)}*.jsa"):
        if other != archive:
            other.unlink(missing_ok=True)


def _place(class_path: Sequence[Path]) -> str:
    return f"spark-{_digest(sorted({str(jar.parent) for jar in class_path}))}-"


def _version(file: Path) -> str:
    try:
        found = file.stat()
    except OSError:  # whoever starts Java says what is missing
        return str(file)
    return f"{file} {found.st_size} {found.st_mtime_ns}"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
