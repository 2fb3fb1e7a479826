"""Spark's jars and the archive of its classes, made while all that needs no Spark starts.

The first start of a user has none of them: Kafka, Valkey and the other services come up meanwhile.
"""

import threading
from pathlib import Path

from waybill_local import archives, jars, shown
from waybill_local.java import Java
from waybill_local.reports import Report, Reporter, ReportKind


class SparkFiles:
    """Begins at once, in a thread of its own. The processes that work for it end with ours."""

    def __init__(self, java: Java, report: Reporter) -> None:
        self._java = java
        self._report = report
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._make, name="spark_files", daemon=True)
        self._thread.start()

    @property
    def present(self) -> bool:
        """True when drivers can start. Raises what kept the files from coming."""
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def wait(self, timeout_s: float) -> None:
        """Return when they are there, when that failed, or after a while."""
        self._thread.join(timeout_s)

    def _make(self) -> None:
        try:
            wanted = jars.jar_set(jars.SPARK)
            retrieve(wanted, self._java, self._report)
            jars.link_pyspark(wanted)
            self._make_archive(wanted.folder)
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._failure = error

    def _make_archive(self, folder: Path) -> None:
        begun = list[Report]()

        def begin() -> None:
            if not begun:
                begun.append(_archive(ReportKind.WORKING, shown.ARCHIVE))
                self._report(begun[0])

        made = archives.ensure_spark(self._java, folder, begin)
        if not made:
            self._report(_archive(ReportKind.NOTE, shown.ARCHIVE_MISSING))
        elif begun:
            self._report(_archive(ReportKind.READY, shown.ARCHIVE_MADE))


def retrieve(wanted: jars.JarSet, java: Java, report: Reporter) -> None:
    """Retrieve a set of jars, if it is not here yet, and report that."""
    if wanted.present:
        return
    name = f"{wanted.name} jars"
    jars.retrieve(
        wanted,
        java=java,
        progress=lambda got: report(Report(kind=ReportKind.WORKING, name=name, text=got.text)),
    )
    text = f"{len(wanted.jars)} in {wanted.folder.parent}"
    report(Report(kind=ReportKind.READY, name=name, text=text))


def _archive(kind: ReportKind, text: str) -> Report:
    return Report(kind=kind, name="archive", text=text)
