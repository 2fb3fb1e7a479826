"""Status over HTTP, with a store in memory."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.status.fakes import KEY, RING, TICK_S, FakeOwners, FakeStore, FixedClock, record
from waybill_shared.http.app import create_app
from waybill_shared.kafka.replies import Replies
from waybill_shared.process.health import Health
from waybill_status.adapters.http.operations import operations_router
from waybill_status.adapters.http.pipelines import events_router, pipelines_router
from waybill_status.adapters.http.tokens import tokens_router
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.events import Events
from waybill_status.app.pipelines.lookup import Pipelines


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def hub(store: FakeStore) -> Hub:
    return Hub(store, waiters_max=1, tick_s=TICK_S)


@pytest.fixture
def events() -> Events:
    return Events(streams_max=1)


@pytest.fixture
def client(store: FakeStore, replies: Replies, hub: Hub, events: Events) -> Iterator[TestClient]:
    clock, owners = FixedClock(), FakeOwners(record())
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=clock)
    pipelines = Pipelines(owners.directory, owners, store)
    routers = [
        tokens_router(tokens, query_bytes_max=300_000),
        pipelines_router(pipelines),
        events_router(pipelines, events, caught_up=lambda: bool(events.of(KEY))),
        operations_router(replies),
    ]

    app = create_app("status", routers, Health())
    with local_client(app) as client:
        yield client
