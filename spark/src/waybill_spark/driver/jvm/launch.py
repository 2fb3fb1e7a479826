"""Starts Spark's JVM: our flags, our process group, any Java 17+, and its class archive.

Spark's own launcher asks for a module that small Java runtimes lack and goes through a shell.
"""

import os
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.process.archives import archive_of, class_path, program
from waybill_spark.driver.jvm.parent import die_with_parent

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 20.0
POLL_S: Final = 0.01
CHUNK: Final = 1 << 16
STDERR: Final = 2
GATEWAY: Final = "org.apache.spark.api.python.PythonGatewayServer"
NOWHERE: Final = "/proc" if Path("/proc").is_dir() else "/"
"""The working folder of the JVM: neither queries nor libraries can leave files there. In `/proc`
not even root can make one."""
OPENS: Final = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect",
    "java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/sun.nio.ch", "java.base/sun.nio.cs", "java.base/sun.security.action",
    "java.base/sun.util.calendar", "java.security.jgss/sun.security.krb5",
)  # fmt: skip


AVRO_LIMITS: Final = (
    "-Dorg.apache.avro.limits.bytes.maxLength=67108864",
    "-Dorg.apache.avro.limits.string.maxLength=67108864",
    "-Dorg.apache.avro.limits.collectionItems.maxLength=4194304",
)
"""The length of a value is before it: without these limits, five bytes could use all memory."""


class JvmFailed(Retryable):
    """Spark's JVM did not start."""


class JvmEnded(Retryable):
    """Error: Spark's JVM has ended, and nobody has ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmOptions:
    java: Path
    jars: Path
    archives: Path
    scratch: Path
    heap: str
    log4j: Path
    more: tuple[Path, ...] = ()
    """Jars after all others: a class archive of those before them still serves."""


class SparkJvm:
    """Ends when its standard input closes, so it never outlives this process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Stop the JVM. Return True if it has ended well by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False


def start_jvm(
    options: JvmOptions,
    conf: Mapping[str, str],
    *,
    recording: Path | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> SparkJvm:
    """Start a JVM with a Py4J gateway; `PYSPARK_GATEWAY_PORT` and `_SECRET` are set for PySpark.

    `recording`: a class archive that it writes when it ends. `on_end` is called in a thread of its
    own when the JVM has ended for any reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "connection"
        # Else Spark asks for the address of this host's own name, which not every host knows.
        place = {"SPARK_LOCAL_HOSTNAME": conf["spark.driver.host"]}
        process = _launch(_command(options, conf, recording), place, info)
        threading.Thread(target=_hand_on, args=(process, on_end), name="jvm", daemon=True).start()
        assert process.stdin is not None
        try:
            port, secret = _await_connection(process, options.java, info)
        except JvmFailed:
            process.stdin.close()  # it has ended: only the pipe to it is left
            process.wait()
            raise
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    return SparkJvm(process)


def _launch(command: list[str], place: Mapping[str, str], info: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=NOWHERE,
            env={**_environment(), **place, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info)},
            preexec_fn=die_with_parent,  # noqa: PLW1509 - system calls only, from a thread that stays
        )
    except OSError as error:
        what = f"{command[0]} (WAYBILL_STAGE_RUNNER_JAVA) cannot be run: {error.strerror}"
        raise JvmFailed(what) from error


def _hand_on(process: subprocess.Popen[bytes], on_end: Callable[[], None]) -> None:
    """Copy the output of the JVM to the present output of this process."""
    assert process.stdout is not None
    with process.stdout as output:
        while said := os.read(output.fileno(), CHUNK):
            os.write(STDERR, said)
    on_end()


def _environment() -> dict[str, str]:
    """Return the environment without our settings: a query may read that of its JVM, `${env:…}`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}


def _archive_options(
    options: JvmOptions, jars: Sequence[Path], recording: Path | None
) -> Iterator[str]:
    archive = archive_of(options.archives, options.java, jars)
    if recording is not None:
        yield f"-XX:ArchiveClassesAtExit={recording}"
    elif archive.exists():
        yield f"-XX:SharedArchiveFile={archive}"
        # At its own address drivers share its memory; elsewhere each has a copy of 110 MB.
        yield from ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")


def _command(options: JvmOptions, conf: Mapping[str, str], recording: Path | None) -> list[str]:
    jars = class_path(options.jars)
    return [
        str(program(options.java)),
        f"-Xmx{options.heap}",
        "-Xss8m",
        "-XX:+UseParallelGC",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        *_archive_options(options, jars, recording),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dorg.apache.kafka.automatic.config.providers=none",
        *AVRO_LIMITS,
        f"-Dlog4j2.configurationFile={options.log4j}",
        # What Spark and its native libraries unpack is not theirs to remove when they are killed.
        f"-Djava.io.tmpdir={options.scratch}",
        f"-Dspark.local.dir={options.scratch}",
        "-XX:-UsePerfData",  # a file in the system's temp folder, whatever java.io.tmpdir says
        *(f"-D{key}={value}" for key, value in conf.items()),
        "-cp",
        ":".join(map(str, (*jars, *options.more))),
        GATEWAY,
    ]


def _await_connection(process: subprocess.Popen[bytes], java: Path, info: Path) -> tuple[int, str]:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not info.exists():
        if process.poll() is not None:
            raise JvmFailed(
                f"{java} ended with exit code {process.returncode} before Spark was there:"
                " it must be Java 17 or newer, and have room for its heap;"
                " what it said is in the driver's log"
            )
        if time.monotonic() > deadline:
            process.kill()
            raise JvmFailed(f"Spark's JVM was not there within {START_TIMEOUT_S} s")
        time.sleep(POLL_S)
    raw = info.read_bytes()
    port, length = struct.unpack(">ii", raw[:8])
    return port, raw[8 : 8 + length].decode()
