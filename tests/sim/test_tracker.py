"""The journal of the simulation's tracker keeps the rules of the one in Kafka."""

import pytest

from builders import make_fact
from contracts.journal import JournalContract
from sim.clocks import TrueClock
from sim.redis_server import RedisServer
from sim.tracker import PARTITION, Topics, TrackerProcess


def edge(name: str) -> None:
    """Nobody is interrupted."""


class Simulated:
    partition = PARTITION
    uids = ("uid-1", "uid-2")

    def __init__(self) -> None:
        self._clock = TrueClock()
        self._topics = Topics()
        self.journal = self._process()

    def tell(self, count: int) -> None:
        self._topics.facts += [make_fact(uid=self.uids[0]) for _ in range(count)]
        self.journal.feed(count)

    def saved(self) -> tuple[dict[str, str], int]:
        held = self._topics.snapshots.items()
        slots = {key.partition("/")[2]: snapshot.slot for key, snapshot in held}
        return slots, self._topics.committed[0]

    def replace(self) -> None:
        self._process()

    def create_anew(self) -> None:
        self._topics.commits_id = "anew"

    def _process(self) -> TrackerProcess:
        return TrackerProcess(self._topics, RedisServer(self._clock), self._clock, edge)


class TestTrackerProcess(JournalContract):
    @pytest.fixture
    def bench(self) -> Simulated:
        return Simulated()
