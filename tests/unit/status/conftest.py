"""Status over HTTP, with a store in memory."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from clocks import FixedClock
from local_client import local_client
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.histories import LifeTopic
from unit.status.slots import RING, TICK_S, record
from waybill_shared.http.app import create_app
from waybill_shared.kafka.replies import Replies
from waybill_shared.process.health import Health
from waybill_status.adapters.http.operations import operations_router
from waybill_status.adapters.http.pipelines import events_router, pipelines_router
from waybill_status.adapters.http.runs import runs_router
from waybill_status.adapters.http.tokens import tokens_router
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines import events as memory
from waybill_status.app.pipelines import history as past
from waybill_status.app.pipelines.history import History
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.runs import Runs
from waybill_status.app.watches import deliveries, host_permits, open_watches, watchers


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def owners() -> FakeOwners:
    return FakeOwners(record())


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def hub(store: FakeStore) -> Hub:
    return Hub(store, waiters_max=1, tick_s=TICK_S)


@pytest.fixture
def topic() -> LifeTopic:
    return LifeTopic()


@pytest.fixture
def history(topic: LifeTopic) -> History:
    return topic.process(0)


@pytest.fixture
def client(
    store: FakeStore,
    owners: FakeOwners,
    replies: Replies,
    hub: Hub,
    *,
    topic: LifeTopic,
    history: History,
) -> Iterator[TestClient]:
    clock = FixedClock()
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=clock)
    pipelines = Pipelines(owners.directory, owners, store)

    def caught_up() -> bool:
        return bool(topic.placed)

    routers = [
        tokens_router(tokens, query_bytes_max=300_000),
        pipelines_router(pipelines),
        events_router(pipelines, history, caught_up=caught_up),
        runs_router(pipelines, Runs(history), caught_up=caught_up),
        operations_router(replies),
    ]

    app = create_app("status", routers, Health())
    with local_client(app) as client:
        yield client


@pytest.fixture
def quick_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that tell of watches look again at once."""
    for module, name in (
        (watchers, "LOOK_S"),
        (watchers, "RETRY_S"),
        (open_watches, "TICK_S"),
        (open_watches, "LATE_S"),
        (open_watches, "RETRY_S"),
    ):
        monkeypatch.setattr(module, name, 0.005)


@pytest.fixture
def quick_deliveries(quick_watches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "RETRY_S", 0.005)
    monkeypatch.setattr(deliveries, "wait_ms", lambda delivery, now_ms: 1)
    monkeypatch.setattr(host_permits, "REST_S_MAX", 0.01)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and parts of the topic are small."""
    monkeypatch.setattr(memory, "EVENTS_MAX", 20)
    monkeypatch.setattr(past, "OFFSETS_MAX", 100)
    monkeypatch.setattr(past, "STEP_MIN", 4)
    monkeypatch.setattr(past, "STREAM_MAX", 7)
