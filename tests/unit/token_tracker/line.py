"""A tracker over fakes, fed from a log of facts."""

from dataclasses import dataclass, field

from builders import NOW, ORDERS_ID, UID, make_commit, make_fact
from clocks import FixedClock
from unit.token_tracker.fakes import FakeJournal, FakeStore
from waybill_shared.contract.events import Fact
from waybill_token_tracker.app.tracker import Tracker
from waybill_token_tracker.core.snapshots import SnapshotRule


@dataclass
class Bench:
    """A tracker over fakes, fed from a log of facts in one partition."""

    store: FakeStore = field(default_factory=FakeStore)
    journal: FakeJournal = field(default_factory=FakeJournal)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    log: list[Fact] = field(default_factory=list)
    rule: SnapshotRule = field(default_factory=SnapshotRule)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new process: all it has is what the journal kept."""
        self.tracker = Tracker(self.store, self.journal, self.clock, self.rule)
        self.position = self.journal.positions.get(0, 0)
        self.tracker.acquire(0, self.position, self.journal.snapshots.values())

    def append(self, *facts: Fact) -> None:
        self.log += facts
        self.journal.ends[0] = len(self.log)

    def applied(self, *facts: Fact) -> None:
        """They come, and Redis has them."""
        self.append(*facts)
        self.feed()
        self.tracker.flush()

    def feed(self, count: int | None = None) -> None:
        for _ in range(len(self.log) - self.position if count is None else count):
            self.tracker.handle_fact(0, self.position, self.log[self.position])
            self.position += 1

    def reached(self) -> int:
        return self.store.slots[UID].slot.sinks["enrich/lake@1"].reached[ORDERS_ID, 0]


def commit(taken: int, *, sequence: int, uid: str = UID) -> Fact:
    return make_fact(make_commit({(ORDERS_ID, 0): taken}, sequence=sequence), uid=uid)
