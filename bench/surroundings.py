"""What measurements run on: Kafka and Valkey of their own, and services as processes."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from waybill_local import archives
from waybill_local.ports import HOST, pick
from waybill_local.processes import die_with
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.kafka.topics import create_topics

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 45.0  # the stage runner ends its drivers first
POLL_S = 0.005
PREFIX = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    kafka: str
    redis: str
    ring: KeyRing
    folder: Path
    environment: dict[str, str]


@contextmanager
def surroundings(folder: Path) -> Iterator[Surroundings]:
    """A broker and a Valkey of the local stack, with our topics in place."""
    command = [sys.executable, "-m", "waybill_local.bare", "--folder", str(folder / "bare")]
    with child(command, dict(os.environ), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        create_topics(said["kafka"], PREFIX)
        key = os.urandom(32)
        keys = folder / "keys.json"
        keys.write_text(json.dumps({"active": 1, "keys": {"1": base64.b64encode(key).decode()}}))
        yield Surroundings(
            kafka=said["kafka"],
            redis=said["redis"],
            ring=KeyRing(active=1, keys={1: key}),
            folder=folder,
            environment={
                **os.environ,
                "WAYBILL_KAFKA": said["kafka"],
                "WAYBILL_REDIS": said["redis"],
                "WAYBILL_TOPIC_PREFIX": PREFIX,
                "WAYBILL_TOKEN_KEYS_FILE": str(keys),
                "WAYBILL_STAGE_RUNNER_STATE_FOLDER": str(folder / "stage_runner"),
                "WAYBILL_STAGE_RUNNER_LAKEHOUSE": str(folder / "lakehouse"),
                "WAYBILL_STAGE_RUNNER_JAVA": said["java"],
                "WAYBILL_STAGE_RUNNER_SPARK_JARS": said["spark_jars"],
                "WAYBILL_STAGE_RUNNER_SPARK_ARCHIVES": str(archives.folder()),
            },
        )


@contextmanager
def service(name: str, around: Surroundings) -> Iterator[str]:
    """A service as a process, its URL at once: whoever measures waits for what it measures."""
    port = pick({name: 0})[name]
    environment = {**around.environment, f"WAYBILL_{name.upper()}_PORT": str(port)}
    with (
        (around.folder / f"{name}.log").open("ab") as log,
        child([sys.executable, "-m", f"waybill_{name}"], environment, stdout=log, stderr=log),
    ):
        yield f"http://{HOST}:{port}"


@contextmanager
def peer(module: ModuleType, around: Surroundings) -> Iterator[str]:
    """A server to compare with, its URL at once."""
    port = pick({"peer": 0})["peer"]
    command = [sys.executable, "-m", module.__name__, str(port)]
    with child(command, around.environment):
        yield f"http://{HOST}:{port}"


def await_ready(url: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(POLL_S)
    raise TimeoutError(f"{url} is not ready after {READY_TIMEOUT_S} s")


@contextmanager
def child(
    command: Sequence[str], environment: dict[str, str], **streams: object
) -> "Iterator[subprocess.Popen[bytes]]":
    process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
        command,
        env=environment,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - system calls only
        **streams,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)
        if process.stdout is not None:
            process.stdout.close()
