"""One stack at a time in each worker: first the tests that start stacks of their own, then all
others, while the stack that they share comes up in the background, when unit tests are done."""

import argparse
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from containers import Servers, docker_answers, servers_in_containers
from deep_parts import part_of
from driver_clocks import driver_clocks
from postgres import DATABASE_URL, Database, database, postgres_process
from telling import AtOnce
from tiers import BUDGET_S, TIERS, ByFile, file_of, has_own_stack, is_deep, needs_stack, place, tier
from timing import CpuByFile, Times
from waybill_local import archives, jars
from waybill_local.java import find_java
from waybill_local.reports import Report
from waybill_local.stack import Options, StackState, down, up
from waybill_shared.process.failpoints import FOLDER

pytest.register_assert_rewrite("contracts")

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("waybill", deadline=None)
settings.load_profile("waybill")

SETTINGS = "WAYBILL_"
START_TIMEOUT_S = 180.0  # the first one on a machine writes class archives
BATCH_BYTES_MAX = 4 << 20  # more is a big batch: few records of a test are enough for one
RESTART_DELAY_S_MAX = 1.0  # tests kill services more often than any fault does


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--containers",
        action=argparse.BooleanOptionalAction,
        help="integration tests use Kafka and Valkey from the images of docker-compose.yml, not the"
        " local stack's (default: where Docker answers)",
    )
    parser.addoption("--deep", action="store_true", help="only what `make test` leaves out")
    parser.addoption(
        "--part", metavar="K/N", type=part_of, help="with --deep: only so much of it, as in 2/8"
    )
    parser.addoption("--sql-seed", type=int, default=1, help="of the texts that SQL is fuzzed with")
    parser.addoption("--sql-count", type=int, default=100, help="how many of them")


def pytest_configure(config: pytest.Config) -> None:
    # Where a shell runs us in the background it is ignored, and those that we start inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A driver of a test lives for seconds: to optimize its code would take longer than it runs.
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    # Nor would each of the hundreds of processes compile all of our modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if config.option.containers is None:
        config.option.containers = docker_answers()


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    plugins.register(cpu := CpuByFile(session.config))
    if (terminal := plugins.getplugin("terminalreporter")) is not None:  # no worker has one
        plugins.register(AtOnce(terminal))
        plugins.register(Times(cpu))


def pytest_report_header(config: pytest.Config) -> list[str]:
    servers = (
        "Docker (--no-containers to change)" if config.option.containers else "the local stack"
    )
    return [
        f"Kafka and Valkey of integration tests: {servers}",
        f"budget on 2 quiet cores: {sum(BUDGET_S.values()) / 120:.0f} min",
    ]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Who names a single test gets it, whichever it is."""
    if not any("::" in arg for arg in config.args):
        wanted = [item for item in items if _is_wanted(item, config)]
        config.hook.pytest_deselected(
            items=[item for item in items if not _is_wanted(item, config)]
        )
        items[:] = wanted
    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Keep what was collected out of garbage collections, which looked at it again and again: they
    took a quarter of the CPU of unit tests.
    """
    gc.collect()
    gc.freeze()


def _is_wanted(item: pytest.Item, config: pytest.Config) -> bool:
    if is_deep(item) != config.option.deep:
        return False
    return config.option.part is None or file_of(item) in config.option.part


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


class BackgroundStack:
    """Started and stopped by one thread: the kernel ties a child to the thread that made it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failpoints = folder / "failpoints"
        self.failpoints.mkdir()
        self.clocks = folder / "clocks"
        # Not by os.environ: each test of the other thread takes our settings out of it.
        self.environment = {
            **without_settings(os.environ),
            FOLDER: str(self.failpoints),
            **driver_clocks(self.clocks),
            "WAYBILL_STAGE_RUNNER_CHECK_TIMEOUT_S": "120",  # two stacks and their tests at once
            "WAYBILL_STAGE_RUNNER_BATCH_BYTES_MAX": str(BATCH_BYTES_MAX),
        }
        self.reports: list[Report] = []
        self.last_checks: list[Callable[[StackState], None]] = []
        self.failure: BaseException | None = None
        self._checked: BaseException | None = None
        self._state: StackState | None = None
        self._up = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stack")

    def start(self) -> None:
        self._thread.start()

    def state(self) -> StackState:
        assert self._up.wait(START_TIMEOUT_S), f"no stack after {START_TIMEOUT_S} s: {self.reports}"
        if self.failure is not None:
            raise self.failure
        assert self._state is not None
        return self._state

    def end(self) -> None:
        """Begin to go down; nobody waits for it."""
        self._stop.set()

    def stop(self) -> None:
        self.end()
        if self._thread.ident is not None:
            self._thread.join()
        if self._checked is not None:
            raise self._checked

    def _run(self) -> None:
        options = Options(
            gateway_port=0,
            kafka_port=0,
            valkey_port=0,
            postgres=True,
            postgres_port=0,
            restart_delay_s_max=RESTART_DELAY_S_MAX,
        )
        try:
            self._state = up(
                self.folder,
                self.reports.append,
                options=options,
                tied=True,
                environment=self.environment,
            )
        except BaseException as error:  # noqa: BLE001 - raised again in the test that asks
            self.failure = error
        self._up.set()
        self._stop.wait()
        try:
            for check in self.last_checks:
                check(self.state())
        except BaseException as error:  # noqa: BLE001 - raised again at the end
            self._checked = error
        down(self.folder, self.reports.append)


@pytest.fixture(scope="session")
def class_archive() -> None:
    """Made once on a machine, while the other worker waits: with it drivers start in half the
    time."""
    assert archives.ensure_spark(find_java(), jars.jar_set(jars.SPARK).folder, lambda: None)


@pytest.fixture(scope="session", autouse=True)
def _class_archive_in_time(request: pytest.FixtureRequest) -> None:
    if any(has_own_stack(item) or needs_stack(item) for item in request.session.items):
        request.getfixturevalue("class_archive")


@pytest.fixture(scope="session")
def _background_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundStack]:
    background = BackgroundStack(tmp_path_factory.mktemp("stack"))
    background.start()
    yield background
    background.stop()


@pytest.fixture(scope="session")
def _stack_is_needed(request: pytest.FixtureRequest) -> bool:
    """Looked at once: each of ten thousand tests would take 5 ms for it."""
    return any(needs_stack(item) for item in request.session.items)


@pytest.fixture(autouse=True)
def _stack_in_time(request: pytest.FixtureRequest, _stack_is_needed: bool) -> None:
    """Start the shared stack a tier before the first one that needs it, if any test does.

    An idle one takes a sixth of a core. The last tier needs none: while it runs, it goes down.
    """
    of = tier(request.node.nodeid)
    if _stack_is_needed and of != TIERS[0] and not has_own_stack(request.node):
        background: BackgroundStack = request.getfixturevalue("_background_stack")
        if of == TIERS[-1]:
            background.end()


@pytest.fixture(scope="session")
def stack(_background_stack: BackgroundStack) -> StackState:
    """The running local stack: Kafka, Valkey, the services and the gateway."""
    return _background_stack.state()


@pytest.fixture(scope="session")
def last_checks(_background_stack: BackgroundStack) -> list[Callable[[StackState], None]]:
    """Called before the stack goes down; what they raise is raised at the end of the session."""
    return _background_stack.last_checks


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """The Kafka and the Valkey of integration tests: Docker's, or the local stack's."""
    if request.config.getoption("containers"):
        with servers_in_containers() as made:
            yield made
    else:
        running: StackState = request.getfixturevalue("stack")
        yield Servers(kafka=running.kafka, redis=running.redis)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL for integration tests: that of DATABASE_URL, or one of this worker's own."""
    if (given := os.environ.get(DATABASE_URL)) is not None:
        yield given
        return
    with postgres_process(tmp_path_factory.mktemp("postgres")) as process:
        yield process.server.url


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    with database(postgres_url) as made:
        yield made


@pytest.fixture(autouse=True)
def _clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test depends on what the caller's shell has set, or on the caller's own contexts; none
    writes into the caller's home."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        monkeypatch.delenv(name)


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(SETTINGS)}


@pytest.fixture(scope="session")
def clocks(stack: StackState, _background_stack: BackgroundStack) -> Path:
    """The folder in which a test turns the clocks of the drivers of a pipeline."""
    return _background_stack.clocks


@pytest.fixture(scope="session")
def failpoints(stack: StackState, _background_stack: BackgroundStack) -> Path:
    """The folder in which a test arms a failpoint of the running stack."""
    return _background_stack.failpoints
