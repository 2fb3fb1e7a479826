"""The steps of `make sync` after the packages, each with a line that shows its progress."""

from collections.abc import Sequence
from typing import Final

from waybill_local import archives, jars, room
from waybill_local.counting import CountingLine
from waybill_local.errors import StackError
from waybill_local.java import Java

ARCHIVE: Final = "of Spark's classes, made once: half a minute"
ARCHIVE_MADE: Final = "of Spark's classes, made once"
ARCHIVE_MISSING: Final = "of Spark's classes could not be made: drivers start more slowly"


def retrieve_all(sets: Sequence[jars.JarSet], java: Java) -> None:
    """Download those of `sets` that are not here yet. Raises StackError."""
    missing = [each for each in sets if not each.present]
    if not missing:
        return
    names, total = " and ".join(each.name for each in missing), sum(len(s.jars) for s in missing)
    room.require(jars.root(), room.JARS_BYTES, "the jars")
    line = CountingLine("jars", f"of {names}")
    done = 0

    def show(got: jars.Download) -> None:
        line.show(got.text, (done + got.done) / total)

    for each in missing:
        try:
            jars.retrieve(each, java=java, progress=show)
        except StackError:
            line.leave()
            raise
        done += len(each.jars)
    size = sum(path.stat().st_size for each in missing for path in each.class_path)
    line.end(f"{total} of {names}, {size / 1e6:.0f} MB downloaded")


def make_archive(java: Java) -> None:
    """Make the archive of Spark's classes. If that fails, all works, but drivers start slowly."""
    lines = list[CountingLine]()

    def show() -> None:
        if not lines:
            lines.append(CountingLine("archive", ARCHIVE))
        lines[0].show(ARCHIVE)

    made = archives.ensure_spark(java, jars.jar_set(jars.SPARK).folder, show)
    if lines:
        lines[0].end(ARCHIVE_MADE if made else archive_missing())


def archive_missing() -> str:
    """Return what the missing archive means, and what the disk lacks for it."""
    lacking = room.lack(archives.folder(), room.ARCHIVE_BYTES)
    full = f" (the disk of {archives.folder()} is too full: {lacking})" if lacking else ""
    return f"{ARCHIVE_MISSING}{full}"
