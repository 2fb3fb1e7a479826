"""A tracker and a status of one's own before Redis servers of one's own."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from integration.conftest import Surroundings, serving
from integration.redis.servers import Valkey
from integration.redis.world import World
from integration.switches import Switch
from waybill_local.ports import HOST


@pytest.fixture(scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("redis")


@pytest.fixture(scope="module")
def valkey(_folder: Path) -> Iterator[Valkey]:
    with Valkey(_folder) as server:
        yield server


@pytest.fixture(scope="module")
def world(surroundings: Surroundings, valkey: Valkey, _folder: Path) -> Iterator[World]:
    with Switch(valkey.port) as tracker_way, Switch(valkey.port) as status_way:
        mine = {**surroundings.environment, "WAYBILL_REDIS": _url(tracker_way)}
        theirs = {**surroundings.environment, "WAYBILL_REDIS": _url(status_way)}
        with (
            serving("token_tracker", mine, _folder / "token_tracker.log") as tracker,
            serving("status", theirs, _folder / "status.log") as status,
            httpx2.Client(base_url=status.url, timeout=120) as client,
        ):
            yield World(
                surroundings=surroundings,
                tracker=tracker,
                status=client,
                tracker_way=tracker_way,
                status_way=status_way,
            )


def _url(way: Switch) -> str:
    return f"redis://{HOST}:{way.port}/0"
