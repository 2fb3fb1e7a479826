"""What integration tests share: the stack's Kafka and Valkey under a prefix of one's own, and
services started as the processes that they are."""

import base64
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx2
import pytest

from containers import Servers
from integration import forked
from integration.waiting import eventually
from waybill_local.ports import pick
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.topics import create_topics

STOP_TIMEOUT_S = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Kafka, Valkey and a key ring; all topics and keys of the test begin with `prefix`."""

    kafka: str
    redis: str
    prefix: str
    ring: KeyRing
    environment: dict[str, str]


@pytest.fixture(scope="module")
def surroundings(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Surroundings]:
    with own_surroundings(servers, tmp_path_factory.mktemp("keys")) as own:
        yield own


@pytest.fixture
def around(servers: Servers, tmp_path: Path) -> Iterator[Surroundings]:
    """Topics and groups of this test alone."""
    with own_surroundings(servers, tmp_path) as own:
        yield own


@contextmanager
def own_surroundings(servers: Servers, folder: Path) -> Iterator[Surroundings]:
    """Their topics go with them: thousands of partitions make a broker slow for all who follow."""
    own = make_surroundings(servers.kafka, servers.redis, folder)
    yield own
    client = make_admin(servers.kafka).client
    topics = [name for name in client.list_topics().topics if name.startswith(own.prefix)]
    for deleted in client.delete_topics(topics).values():
        deleted.result()


def make_surroundings(
    kafka: str, redis: str, folder: Path, *, prefix: str = "", replication: int = 1
) -> Surroundings:
    prefix = prefix or f"t{uuid.uuid4().hex[:10]}"
    create_topics(kafka, prefix, replication=replication)
    admin = make_admin(kafka)
    eventually(lambda: can_be_read(admin, prefix))
    key = os.urandom(32)
    ring_file = folder / "keys.json"
    encoded = base64.b64encode(key).decode()
    ring_file.write_text(f'{{"active": 1, "keys": {{"1": "{encoded}"}}}}')
    return Surroundings(
        kafka=kafka,
        redis=redis,
        prefix=prefix,
        ring=KeyRing(active=1, keys={1: key}),
        environment={
            "WAYBILL_KAFKA": kafka,
            "WAYBILL_REDIS": redis,
            "WAYBILL_TOPIC_PREFIX": prefix,
            "WAYBILL_TOKEN_KEYS_FILE": str(ring_file),
        },
    )


def can_be_read(admin: KafkaAdmin, prefix: str) -> bool:
    """A broker that was told of new topics leads their partitions a moment later."""
    names = {f"{prefix}.{spec.name}" for spec in topic_specs()}
    try:
        found = admin.identify(names)
        return found.keys() == names and all(
            admin.starts(name, topic.partitions) for name, topic in found.items()
        )
    except Retryable:
        return False


StartService = Callable[..., str]


@pytest.fixture(scope="module")
def start_service(
    surroundings: Surroundings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartService]:
    """Starts `python -m NAME`, with more settings if given; the URL once it is ready."""
    folder = tmp_path_factory.mktemp("services")
    started: list[Serving] = []
    with ExitStack() as stack:

        def start(name: str, **settings: str) -> str:
            log = folder / f"{name}-{uuid.uuid4().hex[:6]}.log"
            environment = {**surroundings.environment, **settings}
            started.append(stack.enter_context(serving(name, environment, log)))
            return started[-1].url

        yield start
        for service in started:
            service.terminate()


@contextmanager
def running(name: str, environment: dict[str, str], log: Path) -> Iterator[str]:
    """A service as a process; it must end well when told to."""
    with serving(name, environment, log) as service:
        yield service.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    url: str
    pid: int
    terminate: Callable[[], None]
    """Tells it to end, and returns at once. It may be called again."""


@contextmanager
def serving(
    name: str, environment: dict[str, str], log: Path, *, killed: bool = False
) -> Iterator[Serving]:
    """`killed`: the test may do that."""
    port = free_port()
    settings = {**os.environ, **environment, f"WAYBILL_{name.upper()}_PORT": str(port)}
    process = forked.start(name, settings, log)
    terminate = cache(process.terminate)  # because a second signal forces its end
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(url, process, log)
        assert process.pid is not None
        yield Serving(url=url, pid=process.pid, terminate=terminate)
    finally:
        terminate()
        process.join(STOP_TIMEOUT_S)
    code = process.exitcode
    assert code == 0 or (killed and code == -signal.SIGKILL), log.read_text()


def free_port() -> int:
    return pick({"one": 0})["one"]


def wait_ready(url: str, process: ForkServerProcess, log: Path) -> None:
    def ready() -> bool:
        assert process.exitcode is None, log.read_text()
        try:
            return client.get("/readyz").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    # verify: certificates that no test needs would be read with each client
    with httpx2.Client(base_url=url, verify=False) as client:
        eventually(ready, saw=log.read_text)
