"""A real Kafka broker of one node (KRaft) on the loopback, with its data in the state folder.

It creates no topic when a client merely uses its name. The cluster and its topics keep their ids
over restarts. A broker that was killed is fenced before the next one starts.
"""

import base64
import os
import re
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from waybill_local.archives import Archive, archive
from waybill_local.errors import StackError
from waybill_local.folders import make_private
from waybill_local.jars import JarSet
from waybill_local.java import Java
from waybill_local.ports import HOST, accepts, address
from waybill_local.processes import ChildSpec, die_with

NAME = "kafka"
HEAP = "-Xmx512m"
READY_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30  # the run that records an archive needs some of it
PROBE_TIMEOUT_S = 1.0
FORMAT_TIMEOUT_S = 150  # 3 s mostly; a minute was too short on a machine with much other work
FENCE_TIMEOUT_S = 30
FENCE_SESSION_MS = 200
FENCE_FOUND = re.compile("task maybeFenceStaleBroker generated ([0-9]+) records")
"""A line in the controller's log: how many records its check for a stale broker made. The check
runs eight times in each session."""
FENCE_DONE = "Processed maybeFenceStaleBroker"  # its records, if there were any, are written
FENCE_IDLE_MAX = 40  # after more checks without a record there is nothing to fence
CLEAN = ".kafka_cleanshutdown"  # Kafka's own mark, which it deletes as soon as it runs
VOTERS = "controller.quorum.voters"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Everything that a start of the broker needs."""

    java: Java
    jars: JarSet
    folder: Path
    port: int
    controller_port: int
    advertised_port: int | None = None  # what clients get: something in front of `port`
    settings: Mapping[str, object] = field(default_factory=dict)  # these replace our own
    format_options: tuple[str, ...] = ()  # of `kafka-storage format`: the first users

    @property
    def version(self) -> str:
        core = next(jar for jar in self.jars.jars if ":kafka_2.13:" in jar.coordinate)
        return core.coordinate.rpartition(":")[2]

    @property
    def alone(self) -> bool:
        return VOTERS not in self.settings

    @property
    def scratch(self) -> Path:
        """The folder where its libraries unpack files. A killed broker does not delete them."""
        return self.folder / "tmp"

    @property
    def archive(self) -> Archive:
        return archive(NAME, self.java, self.jars.folder)


def spec(broker: Broker) -> ChildSpec:
    """Return how to run the broker.

    Before that, write its configuration. Format the data folder if it is new, or fence the previous
    broker if it was killed.
    """
    make_private(broker.folder)
    shutil.rmtree(broker.scratch, ignore_errors=True)
    broker.scratch.mkdir()
    settings = broker.folder / "server.properties"
    settings.write_text(properties(broker), encoding="utf-8")
    if not (broker.folder / "data" / "meta.properties").is_file():
        _format(broker, settings)
    elif broker.alone and not (broker.folder / "data" / CLEAN).exists():
        _fence_last_life(broker)
    command = (
        *_java(broker),
        *broker.archive.options(),
        *_program(broker, "kafka.Kafka"),
        str(settings),
    )
    return ChildSpec(
        name=NAME,
        version=broker.version,
        address=address(broker.port),
        command=command,
        environment=_environment(),
        wrong=_probe(broker.port),
        ready_timeout_s=READY_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
        restarts=False,
        fix=f"read its log; if its data is damaged, delete {broker.folder}: topics are lost",
    )


def properties(broker: Broker) -> str:
    """Return the broker's configuration: one node, small internal topics, no delays."""
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        # Static voters: the controller may come up on another port the next time.
        VOTERS: f"1@{HOST}:{broker.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{HOST}:{broker.port},"
        f"CONTROLLER://{HOST}:{broker.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{address(broker.advertised_port or broker.port)}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": broker.folder / "data",
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A transaction that a killed process left open ends soon after its timeout, not 10 s later.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # No other broker can replace it, so a pause of the machine must not fence it. One that was
        # killed is fenced at the next start.
        "broker.session.timeout.ms": 3_600_000,
        "broker.heartbeat.interval.ms": 1000,
        "num.network.threads": 2,
        "num.io.threads": 4,
        # Its default alone is a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }
    return _lines({**settings, **broker.settings})


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _fence_last_life(broker: Broker) -> None:
    """Run the controller alone until it has fenced the previous broker, which was killed.

    Without this, partitions seem to have a leader until the session of that broker ends, and then
    have none for a moment. A transaction marker that Kafka 4.3 or 4.4 should send to them at that
    moment is never sent. Consumers that read committed records wait there for ever (KAFKA-20734).
    """
    settings = broker.folder / "controller.properties"
    own = {
        "process.roles": "controller",
        "node.id": 1,
        VOTERS: f"1@{HOST}:{broker.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{HOST}:{broker.controller_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": broker.folder / "data",
        "broker.session.timeout.ms": FENCE_SESSION_MS,
        "broker.heartbeat.interval.ms": FENCE_SESSION_MS // 2,
    }
    settings.write_text(_lines(own), encoding="utf-8")
    options = ("-Dwaybill.controller.level=debug",)
    process = subprocess.Popen(
        (*_java(broker), *options, *_program(broker, "kafka.Kafka"), str(settings)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(),
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - system calls only
    )
    found, looks = False, 0
    too_late = threading.Timer(FENCE_TIMEOUT_S, process.terminate)
    too_late.start()
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if look := FENCE_FOUND.search(line):
                found = found or look[1] != "0"
                looks += 1
            elif FENCE_DONE in line and (found or looks > FENCE_IDLE_MAX):
                process.terminate()
    too_late.cancel()


def _format(broker: Broker, settings: Path) -> None:
    command = (
        *_java(broker),
        *_program(broker, "kafka.tools.StorageTool"),
        *("format", "--ignore-formatted", "--config", str(settings), "--cluster-id", _new_id()),
        *broker.format_options,
    )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            env=_environment(),
            preexec_fn=die_with(os.getpid()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"Kafka's own program for that was not done after {FORMAT_TIMEOUT_S} s"
        raise _format_error(broker, why, fix="stop other work of this machine") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        why = "\n       ".join(said[-5:]) or f"exit code {done.returncode}"
        raise _format_error(broker, why, fix="see that the disk has room")


def _format_error(broker: Broker, why: str, *, fix: str) -> StackError:
    return StackError(
        f"kafka's data folder {broker.folder / 'data'} could not be prepared",
        why=why,
        fix=f"{fix}, delete {broker.folder} and try again",
    )


def _java(broker: Broker) -> tuple[str, ...]:
    return (
        str(broker.java.path),
        HEAP,
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",  # a file in the system's temp folder, whatever java.io.tmpdir says
        f"-Djava.io.tmpdir={broker.scratch}",
    )


def _program(broker: Broker, main: str) -> tuple[str, ...]:
    class_path = os.pathsep.join(map(str, broker.jars.class_path))
    return (f"-Dlog4j2.configurationFile={LOG_SETTINGS}", "-cp", class_path, main)


def _environment() -> dict[str, str]:
    """Return the environment without the options that are meant for the user's own Kafka tools."""
    return {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}


def _new_id() -> str:
    """Return a cluster id as Kafka makes them, but never with a leading dash.

    The storage tool would read that as an option.
    """
    return "w" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode()[1:22]


def _probe(port: int) -> Callable[[], str | None]:
    """Return a function that says why the broker is not ready.

    It is ready when a client gets metadata from it, with the broker registered in them.
    """
    clients: list[AdminClient] = []

    def wrong() -> str | None:
        if not clients:
            if not accepts(port):
                return f"nothing listens on {address(port)}"
            clients.append(AdminClient({"bootstrap.servers": address(port), "log_level": 0}))
        try:
            if not clients[0].list_topics(timeout=PROBE_TIMEOUT_S).brokers:
                return "the broker has not registered yet"
        except KafkaException as error:
            return f"metadata: {error.args[0].str()}"
        clients.clear()
        return None

    return wrong
