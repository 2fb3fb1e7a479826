"""Topics and driver processes of the runner, the real ones. What the drivers run is a stand-in."""

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import Servers
from contracts.drivers import DriversContract
from contracts.topics import PARTITIONS, TopicsContract, plan
from integration.waiting import eventually
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.clock import SystemClock
from waybill_stage_runner.adapters.drivers import DRIVERS, SPEC, DriverPool
from waybill_stage_runner.adapters.groups import groups_with
from waybill_stage_runner.adapters.processes import HOME, RUNS
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.core.pipelines.planning import begin_times, start_at
from waybill_stage_runner.settings import Settings

WAIT_S = 120.0
HOUR_MS = 3_600_000
MANIFEST = read_manifest("""
version: 1
name: orders
inputs:
  - {name: orders, kafka: {topic: orders.in}, startingOffsets: 2 hours ago, schema: "a INT"}
stages:
  - {name: load, inputs: [orders], sinks: [{name: out, kafka: {topic: orders.out}}]}
""").model
STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


class RealTopics:
    def __init__(self, kafka: str) -> None:
        self.topic = f"ports-{uuid.uuid4().hex[:8]}"
        self.topics = KafkaTopics(make_admin(kafka), prefix="waybill", replication=1)
        self._producer = make_producer(kafka)

    def write(self) -> None:
        self.write_at(*((partition, 0) for partition in range(PARTITIONS)))

    def write_at(self, *records: tuple[int, int]) -> None:
        """Write records, each with its partition and its time; 0: now."""
        for partition, at in records:
            self._producer.produce(self.topic, b"{}", partition=partition, timestamp=at)
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

    def test_a_time_is_the_first_record_that_is_not_older_or_the_end(
        self, bench: RealTopics
    ) -> None:
        now = SystemClock().now_ms()
        (source,) = MANIFEST.inputs
        state = bench.topics.prepare([plan(bench)])[bench.topic]
        bench.write_at((0, now - 3 * HOUR_MS), (0, now - HOUR_MS), (0, now), (1, now - 3 * HOUR_MS))
        state = bench.topics.prepare([plan(bench, source.starting_offsets)])[bench.topic]
        at = begin_times(MANIFEST, now)[source.kafka.topic]
        found = bench.topics.starts_at({bench.topic: state}, at)[bench.topic]
        assert start_at(state, found).starts == {0: 1, 1: 1}
        assert state.starts == {0: 0, 1: 0}


class TestDriverPool(DriversContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[RealDrivers]:
        real = RealDrivers(tmp_path)
        yield real
        real.close()
