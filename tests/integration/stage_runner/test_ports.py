"""Topics and driver processes of the runner, the real ones. No driver lives to start its JVM."""

import json
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
from waybill_stage_runner.adapters.drivers import SPEC, DriverProcesses
from waybill_stage_runner.adapters.groups import groups_with
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.settings import Settings

WAIT_S = 30.0


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
        self.drivers = DriverProcesses(Settings(stage_runner_state_folder=folder))

    def settled(self, *wanted: tuple[str, int]) -> bool:
        eventually(lambda: self._living() == [*wanted], within_s=WAIT_S)
        return True

    def close(self) -> None:
        for uid in ("uid-1", "uid-2"):
            self.drivers.stop(uid, force=True)
        self.settled()

    def _living(self) -> list[tuple[str, int]]:
        """Each process group counts, whether or not the runner knows it."""
        specs = sorted(self._folder.glob(f"*/{SPEC}"))
        return [
            (spec.parent.name, json.loads(spec.read_text())["epoch"])
            for spec in specs
            for _ in groups_with(str(spec).__eq__)
        ]


class TestKafkaTopics(TopicsContract):
    @pytest.fixture
    def bench(self, servers: Servers) -> RealTopics:
        return RealTopics(servers.kafka)


class TestDriverProcesses(DriversContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[RealDrivers]:
        real = RealDrivers(tmp_path)
        yield real
        real.close()
