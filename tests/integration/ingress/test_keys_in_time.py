"""Keys after a day, and in topics that are compacted meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from integration.brokers import make_broker, running
from integration.conftest import Surroundings, make_surroundings
from integration.ingress.keyed import (
    all_written,
    an_ingress,
    answered,
    done,
    fresh_key,
    send,
    written,
)
from integration.ingress.test_records import Known
from integration.waiting import eventually
from waybill_local.ports import address, pick
from waybill_shared.kafka.admin import make_admin

TURNED = "TEST_CLOCK_AHEAD_H"
TURN = f"""
import os, time
ahead_s = int(os.environ.get("{TURNED}", "0")) * 3600
at_ns, at = time.time_ns, time.time
time.time_ns = lambda: at_ns() + ahead_s * 10**9
time.time = lambda: at() + ahead_s
"""
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "200",
}
MARKS, CLIENTS, ROUNDS = 30, 8, 2


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    ports = pick({"kafka": 0, "controller": 0})
    settings = {"log.cleaner.backoff.ms": 100}
    kafka = make_broker(tmp_path_factory, ports, settings=settings)
    with running(kafka):
        nowhere = "redis://127.0.0.1:1/0"  # ingress has no use for it
        made = make_surroundings(address(ports["kafka"]), nowhere, tmp_path_factory.mktemp("keys"))
        made.environment["TEST_DATA"] = str(kafka.folder / "data")
        yield made


@pytest.mark.parametrize(("ahead_h", "times"), [(23, 1), (25, 2)])
def test_a_key_is_new_after_a_day(
    surroundings: Surroundings,
    known: Known,
    ingress: httpx2.Client,
    tmp_path: Path,
    ahead_h: int,
    times: int,
) -> None:
    """By the clock of another process; what it has carried out anew, this one repeats."""
    key = fresh_key()
    row = f'{{"customer": "{key}"}}'
    first = send(ingress, known, key, row)
    (tmp_path / "sitecustomize.py").write_text(TURN)
    turned = {"PYTHONPATH": str(tmp_path), TURNED: str(ahead_h)}
    with an_ingress(surroundings, tmp_path, **turned) as late:
        answered(late.http, known, fresh_key())  # it knows the pipeline
        again = send(late.http, known, key, row)
        assert ("idempotent-replayed" in again.headers) is (times == 1)
        assert done(lambda: send(ingress, known, key, row)).json() == again.json()
    assert (first.json() == again.json()) is (times == 1)
    assert len(written(surroundings, known, key)) == times


def test_compaction_hides_no_claim_and_no_answer(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, tmp_path: Path
) -> None:
    """While they are written, and for a process that reads what is left."""
    _alter(surroundings, COMPACTED)
    data = Path(surroundings.environment["TEST_DATA"])
    marks = [fresh_key() for _ in range(MARKS)]
    tokens: dict[str, str] = {}
    with ThreadPoolExecutor(CLIENTS) as pool:
        for _ in range(ROUNDS):
            for mark, answer in zip(
                marks, pool.map(lambda mark: answered(ingress, known, mark), marks), strict=True
            ):
                assert tokens.setdefault(mark, answer.json()["token"]) == answer.json()["token"]
            _await_cleaned(surroundings, data, known, ingress)
    with an_ingress(surroundings, tmp_path) as other:
        for mark in marks:
            assert answered(other.http, known, mark).json()["token"] == tokens[mark]
    assert all_written(surroundings, known, marks) == dict.fromkeys(marks, 1)


def _alter(around: Surroundings, config: dict[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resources = [
        ConfigResource(ResourceType.TOPIC, f"{around.prefix}.{topic}", incremental_configs=entries)
        for topic in ("requests", "answers")
    ]
    client = make_admin(around.kafka).client
    for future in client.incremental_alter_configs(resources).values():
        future.result()


def _await_cleaned(around: Surroundings, data: Path, known: Known, ingress: httpx2.Client) -> None:
    """More goes in, which closes segments, until the cleaner has come further in both topics."""
    before = _cleaned(around, data)

    def has_come_further() -> bool:
        answered(ingress, known, fresh_key())
        return all(_cleaned(around, data)[topic] > end for topic, end in before.items())

    eventually(has_come_further, saw=lambda: (before, _cleaned(around, data)))


def _cleaned(around: Surroundings, data: Path) -> dict[str, int]:
    """How far the cleaner has come: the sum over all partitions of each topic."""
    found = {f"{around.prefix}.requests": 0, f"{around.prefix}.answers": 0}
    checkpoint = data / "cleaner-offset-checkpoint"
    if checkpoint.exists():
        for line in checkpoint.read_text().splitlines()[2:]:
            topic, _, offset = line.split()
            if topic in found:
                found[topic] += int(offset)
    return found
