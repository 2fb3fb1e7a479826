"""Topics and driver processes of the runner, the real ones. What the drivers run is a stand-in."""

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import Servers
from contracts.drivers import DriversContract
from contracts.topics import PARTITIONS, TopicsContract
from integration.waiting import eventually
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_stage_runner.adapters.drivers import DRIVERS, SPEC, DriverPool
from waybill_stage_runner.adapters.groups import groups_with
from waybill_stage_runner.adapters.processes import HOME, RUNS
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.settings import Settings

WAIT_S = 120.0
STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


class RealTopics:
    def __init__(self, kafka: str) -> None:
        self.topic = f"ports-{uuid.uuid4().hex[:8]}"
        self.topics = KafkaTopics(make_admin(kafka), prefix="waybill", replication=1)
        self._producer = make_producer(kafka)

    def write(self) -> None:
        for partition in range(PARTITIONS):
            self._producer.produce(self.topic, value=b"{}", partition=partition)
        assert self._producer.flush(WAIT_S) == 0


class RealDrivers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.drivers = DriverPool(Settings(stage_runner_state_folder=folder), STAND_IN)

    def settled(self, *wanted: tuple[str, int]) -> bool:
        eventually(lambda: self._living() == [*wanted], within_s=WAIT_S)
        return True

    def close(self) -> None:
        self.drivers.stop_all(WAIT_S)

    def _living(self) -> list[tuple[str, int]]:
        """Each process group counts, whether or not the runner knows it."""
        list(self.drivers.receive())
        notes = self._folder.glob(f"{DRIVERS}/*/{RUNS}/*")
        return [
            (uid, json.loads((self._folder / uid / SPEC).read_text())["epoch"])
            for uid, home in sorted((note.name, note.parents[1] / HOME) for note in notes)
            for _ in groups_with(str(home).__eq__)
        ]


class TestKafkaTopics(TopicsContract):
    @pytest.fixture
    def bench(self, servers: Servers) -> RealTopics:
        return RealTopics(servers.kafka)


class TestDriverPool(DriversContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[RealDrivers]:
        real = RealDrivers(tmp_path)
        yield real
        real.close()
