"""The process with the ordinary program, for whoever starts, asks and kills it."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pyiceberg.table import StaticTable

from examples.truth.bare_host import Answer, HostSpec, Order, table_folder
from examples.truth.waiting import Late
from waybill_local import archives, jars
from waybill_local.java import find_java

ANSWER_TIMEOUT_S: Final = 120.0  # the first one includes the start of Spark
REASON: Final = re.compile(r"^Reason: (.+)$", re.MULTILINE)
WARNING: Final = re.compile(rb"^\S+ (?:WARN|ERROR) +Kafka", re.MULTILINE)
ERROR_LENGTH_MAX: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class BareRun:
    """What the program said: the error it died of, and how often Spark's Kafka source warned."""

    error: str | None
    warnings: int


class BareSide:
    def __init__(self, kafka: str, folder: Path) -> None:
        java = find_java()
        spark_jars = jars.jar_set(jars.SPARK).folder
        self._spec = HostSpec(
            kafka=kafka,
            folder=str(folder),
            java=str(java.path),
            jars=str(spark_jars),
            archives=str(archives.folder()),
        )
        self._log = folder / "spark.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once; Spark comes up in the background."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "examples.truth.bare_host", json.dumps(asdict(self._spec))],
                bufsize=0,  # whether an answer is there is asked of the pipe itself
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def run(self, topic: str, **options: str) -> BareRun:
        """Start the program, let it take all that is there, and stop it if it has not died."""
        said_before = self._log.stat().st_size
        answer = self._ask(Order(topic=topic, options=options))
        said = self._log.read_bytes()[said_before:]
        error = None if answer.error is None else _gist(answer.error)
        return BareRun(error=error, warnings=len(WARNING.findall(said)))

    def run_until_appended(self, topic: str) -> None:
        """Start the program, and return when a batch is in the table, but not yet noted as done."""
        if not self._ask(Order(topic=topic, hold=True)).held:
            raise Late("the ordinary program wrote nothing")

    def kill(self) -> None:
        process = self._running()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def numbers(self, topic: str) -> list[int | None]:
        """The column `order_id` of all rows of the table, as another reader finds it."""
        table = StaticTable.from_metadata(table_folder(self._spec.folder, topic))
        column = table.scan(selected_fields=("order_id",)).to_arrow().column("order_id")
        return [value if value is None else int(value) for value in column.to_pylist()]

    def _ask(self, order: Order) -> Answer:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
        except BrokenPipeError:
            raise Late(f"the process of the ordinary program ended: {process.wait()}") from None
        if not select.select([process.stdout], [], [], ANSWER_TIMEOUT_S)[0]:
            raise Late(f"no answer from the ordinary program within {ANSWER_TIMEOUT_S} s")
        line = process.stdout.readline()
        if not line:
            raise Late(f"the process of the ordinary program ended: {process.wait()}")
        return Answer(**json.loads(line))

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start comes first"
        return self._process


def _gist(error: str) -> str:
    """The reason within many lines of traces."""
    found = REASON.search(error)
    return (found[1] if found else error.split("\n", 1)[0])[:ERROR_LENGTH_MAX]
