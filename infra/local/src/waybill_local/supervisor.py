"""Runs one local stack: starts it in order, watches it, stops it in reverse.

Runs in the main thread of its process: the kernel ends children with the thread that made them.
"""

import contextlib
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from waybill_local import archives, broker, jars, postgres, room, services, spark_files, valkey
from waybill_local.errors import StackError
from waybill_local.fleet import RESTART_DELAY_S_MAX, Fleet
from waybill_local.folders import make_private, state_folder
from waybill_local.java import Java, find_java
from waybill_local.ports import address, holder, pick
from waybill_local.processes import Interrupted, end_all, find
from waybill_local.reports import STACK, Report, Reporter, ReportKind, one_at_a_time
from waybill_local.services import RUNNER, SERVICES, Service
from waybill_local.spark_files import SparkFiles
from waybill_local.state import StackPhase, StackState, load, only_supervisor, save
from waybill_shared.access.key_ring import ensure_key_ring

WATCH_S = 0.1
OPEN_FILES = 65_536
GATEWAY = "gateway"
DEFAULT_PORTS = {GATEWAY: 8080, broker.NAME: 9092, valkey.NAME: 6379, "controller": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The choices of a start: ports (0 = any, None = the last ones), and the services as data.

    A stack that had a `postgres` once always has it: it contains what pipelines wrote there.

    A service that crashes again and again waits up to `restart_delay_s_max` before it is restarted.
    """

    gateway_port: int | None = None
    kafka_port: int | None = None
    valkey_port: int | None = None
    postgres: bool = False
    postgres_port: int | None = None
    services: tuple[Service, ...] = SERVICES
    restart_delay_s_max: float = RESTART_DELAY_S_MAX


def run(folder: Path, options: Options, report: Reporter) -> None:
    """Start the stack of `folder`, run it until SIGINT or SIGTERM, then end all its processes.

    Raises AlreadyRunning, Interrupted if asked to stop before it was ready, or StackError if it
    cannot start or if Kafka ends.
    """
    home, report = make_private(state_folder(folder)), one_at_a_time(report)
    _allow_many_files()
    with only_supervisor(home):
        room.require(home, room.STATE_BYTES_MIN, "a stack")
        (home / ".gitignore").write_text("*\n", encoding="utf-8")
        before = load(home)
        if before:
            sweep(before)
        started = time.monotonic()
        java = prepare(report)
        if (home / postgres.NAME).exists():
            options = replace(options, postgres=True)
        ports = _pick(choose_ports(options, before), report)
        with _signals() as signals:
            one = _Run(
                home=home, options=options, report=report, java=java, ports=ports, signals=signals
            )
            one.run(started)


def prepare(report: Reporter) -> Java:
    """Find Java and download the broker's jars: nothing can start without them."""
    java = find_java()
    if java.note:
        report(Report(kind=ReportKind.NOTE, name="java", text=f"passed over: {java.note}"))
    report(Report(kind=ReportKind.READY, name="java", version=java.version, address=str(java.path)))
    if not all(jars.jar_set(name).present for name in jars.NEEDED):
        room.require(jars.root(), room.JARS_BYTES, "the jars")
    spark_files.retrieve(jars.jar_set(jars.KAFKA), java, report)
    archives.ensure_default(java)  # the broker's archive builds on it
    return java


def choose_ports(options: Options, before: StackState | None) -> dict[str, int]:
    """Return the ports to try: the chosen ones, else those of the last run, else the usual ones.

    So addresses that people noted stay valid.
    """
    usual_ports = DEFAULT_PORTS | ({postgres.NAME: 5432} if options.postgres else {})
    names = (*usual_ports, *(service.name for service in options.services))
    usual = {**dict.fromkeys(names, 0), **usual_ports, **(before.ports if before else {})}
    chosen = {
        GATEWAY: options.gateway_port,
        broker.NAME: options.kafka_port,
        valkey.NAME: options.valkey_port,
        postgres.NAME: options.postgres_port,
    }
    return {name: port if (port := chosen.get(name)) is not None else usual[name] for name in names}


def _pick(wanted: dict[str, int], report: Reporter) -> dict[str, int]:
    """Return the wanted ports, with another for one that is in use.

    Report that, as people expect the usual port.
    """
    ports = pick(wanted)
    for name, port in wanted.items():
        if port not in (0, ports[name]):
            text = f"port {port} is in use by {holder(port)}: {address(ports[name])} instead"
            report(Report(kind=ReportKind.NOTE, name=name, text=text))
    return ports


def sweep(state: StackState) -> int:
    """End the processes of a stack that still run without their supervisor. Return their number.

    That happens if the supervisor was killed where the kernel does not end its children.
    """
    found = [find(process.pid, process.began) for process in state.processes]
    left = [process for process in found if process is not None]
    for process in left:
        process.terminate()
    end_all(left)
    return len(left)


class _Run:
    """One run of one stack."""

    def __init__(
        self,
        *,
        home: Path,
        options: Options,
        report: Reporter,
        java: Java,
        ports: dict[str, int],
        signals: Sequence[int],
    ) -> None:
        self.home = home
        self.options = options
        self.report = report
        self.java = java
        self.ports = ports
        self.phase = StackPhase.STARTING
        self.failure = ""
        self.process = psutil.Process()
        self.names = [service.name for service in options.services]
        self.kafka = broker.Broker(
            java=java,
            jars=jars.jar_set(jars.KAFKA),
            folder=home / "kafka",
            port=ports["kafka"],
            controller_port=ports["controller"],
        )
        self.fleet = Fleet(
            logs=make_private(home / "logs"),
            report=report,
            changed=self.save,
            signals=signals,
            restart_delay_s_max=options.restart_delay_s_max,
        )

    def run(self, started: float) -> None:
        self.save()
        try:
            self.start()
            self.phase = StackPhase.READY
            self.save()
            self.report_whole(ReportKind.READY, time.monotonic() - started)
            while not self.fleet.stopping:
                self.fleet.watch()
                time.sleep(WATCH_S)
        except StackError as error:
            self.failure = str(error)
            raise
        finally:
            self.stop()

    def start(self) -> None:
        ensure_key_ring(self.home / services.KEY_RING)
        spark = SparkFiles(self.java, self.report)
        self.fleet.start(broker.spec(self.kafka))  # first: preparing its folder takes a moment
        self.fleet.start(valkey.spec(self.home / "valkey", self.ports["valkey"]))
        stores = [valkey.NAME, broker.NAME]
        if self.options.postgres:
            self.fleet.start(postgres.spec(self.postgres))
            stores.append(postgres.NAME)
        self.fleet.wait_ready(stores)
        self.create_topics()
        environment = services.environment(self.home, self.ports, self.java)
        if self.options.postgres:
            environment = self.connected(environment)
        for service in self.options.services:
            if service.name != RUNNER or spark.present:
                self.fleet.start(services.spec(service, self.ports[service.name], environment))
        if not spark.present:
            self.fleet.wait_ready([name for name in self.names if name in self.fleet.members])
            self.await_files(spark)
        for service in self.options.services:
            if service.name not in self.fleet.members:
                self.fleet.start(services.spec(service, self.ports[service.name], environment))
        self.fleet.wait_ready(self.fleet.late(self.names))

    def await_files(self, spark: SparkFiles) -> None:
        """Return when drivers can start. The services that run accept records meanwhile."""
        while not spark.present:
            self.fleet.watch()
            spark.wait(WATCH_S)
            if self.fleet.stopping:
                raise Interrupted

    @property
    def postgres(self) -> postgres.Server:
        return postgres.Server(self.home / postgres.NAME, self.ports[postgres.NAME])

    def connected(self, environment: dict[str, str]) -> dict[str, str]:
        """Return the environment with a file of connections, unless the caller has set one."""
        file = self.home / services.CONNECTIONS
        file.write_text(postgres.connections(self.postgres), encoding="utf-8")
        return {services.CONNECTIONS_SETTING: str(file), **environment}

    def create_topics(self) -> None:
        from waybill_shared.kafka.topics import create_topics  # slow to import: not before now

        started = time.monotonic()
        created = create_topics(address(self.ports["kafka"]), services.topic_prefix())
        text = f"{len(created)} made" if created else "in place"
        took = time.monotonic() - started
        self.report(Report(kind=ReportKind.READY, name="topics", text=text, seconds=took))

    def stop(self) -> None:
        """Stop the services, then Kafka and the stores, to which services write to the end."""
        started = time.monotonic()
        self.phase = StackPhase.STOPPING
        self.save()
        self.fleet.stop(self.names)
        self.fleet.stop([broker.NAME, valkey.NAME, postgres.NAME])
        kafka = self.fleet.members.get(broker.NAME)
        self.kafka.archive.keep(good=kafka is not None and kafka.ended_well)
        self.phase = StackPhase.STOPPED
        self.save()
        self.report_whole(ReportKind.STOPPED, time.monotonic() - started)

    def save(self) -> None:
        began = self.process.create_time()
        state = StackState(
            folder=self.home,
            phase=self.phase,
            version=version("waybill-local"),
            started_at=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
            supervisor_pid=self.process.pid,
            supervisor_began=began,
            ports=self.ports,
            processes=self.fleet.states if self.phase is not StackPhase.STOPPED else (),
            failure=self.failure,
        )
        # On a full disk the last state stays: its processes run, or are seen not to run.
        with contextlib.suppress(OSError):
            save(state)

    def report_whole(self, kind: ReportKind, seconds: float) -> None:
        url = f"http://{address(self.ports[GATEWAY])}"
        text = "" if kind is ReportKind.READY else f"state kept in {self.home}"
        self.report(Report(kind=kind, name=STACK, address=url, seconds=seconds, text=text))


def _allow_many_files() -> None:
    """Raise the limit of open files for us and all children.

    In the gateway each waiting caller needs two.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(most, OPEN_FILES) if most != resource.RLIM_INFINITY else OPEN_FILES
    with contextlib.suppress(ValueError, OSError):  # some systems cap it below what they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Yield the list of signals received so far: the first asks to stop, the second forces it."""
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: received.append(got))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
