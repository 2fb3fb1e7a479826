"""Gets Spark's jars and makes the archive of its classes, while all that needs no Spark starts.

At the first start of a user neither is there. Kafka, Valkey and the other services start meanwhile.
"""

import threading
from pathlib import Path

from waybill_local import archives, jars, shown
from waybill_local.java import Java
from waybill_local.reports import Report, Reporter, ReportKind


class SparkFiles:
    """Spark's files. A thread starts at once to get them. Its child processes end with ours."""

    def __init__(self, java: Java, report: Reporter) -> None:
        self._java = java
        self._report = report
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._make, name="spark_files", daemon=True)
        self._thread.start()

    @property
    def present(self) -> bool:
        """True if drivers can start. Raises the error for which the files are missing."""
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def wait(self, timeout_s: float) -> None:
        """Return when the files are there, when that failed, or after `timeout_s`."""
        self._thread.join(timeout_s)

    def _make(self) -> None:
        try:
            wanted = jars.jar_set(jars.SPARK)
            retrieve(wanted, self._java, self._report)
            jars.link_pyspark(wanted)
            self._make_archive(wanted.folder)
        except Exception as error:  # noqa: BLE001 - `present` raises it again
            self._failure = error

    def _make_archive(self, folder: Path) -> None:
        started = list[Report]()

        def begin() -> None:
            if not started:
                started.append(_archive(ReportKind.WORKING, shown.ARCHIVE))
                self._report(started[0])

        made = archives.ensure_spark(self._java, folder, begin)
        if not made:
            self._report(_archive(ReportKind.NOTE, shown.archive_missing()))
        elif started:
            self._report(_archive(ReportKind.READY, shown.ARCHIVE_MADE))


def retrieve(wanted: jars.JarSet, java: Java, report: Reporter) -> None:
    """Download a set of jars if it is not here yet, and report that."""
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
