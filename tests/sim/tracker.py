"""The tracker's process: the real `Tracker`, fed from the simulated topics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sim.redis_server import RedisServer, Store
from sim.sinks import Edge
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact, Snapshot, snapshot_key
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.process.clock import Clock
from waybill_token_tracker.app.ports import SlotWrite, WriteResult
from waybill_token_tracker.app.tracker import Tracker
from waybill_token_tracker.core.snapshots import SnapshotRule

PARTITION = 0
RULE = SnapshotRule(tail_max=5, age_ms_max=1_000_000)  # so that a save leaves some for later


@dataclass(slots=True)
class Topics:
    """`waybill.commits`, `.lifecycle`, `.beats` and `.frontiers`; the group's offsets."""

    commits_id: str = "commits"
    facts: list[Fact] = field(default_factory=list)
    lifecycle: list[LifecycleEvent] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    committed: tuple[int, int] = (0, 0)
    owner: object = None
    """The tracker that was the last to take over: the group knows no other."""

    def transact(
        self, member: object, snapshots: Iterable[Snapshot], committed: tuple[int, int]
    ) -> None:
        """Snapshots and offsets: all or nothing."""
        if member is not self.owner:
            raise Retryable("offsets are not committed: unknown member")
        told = {snapshot_key(snapshot): snapshot for snapshot in snapshots}
        self.snapshots |= told
        for key in [key for key, snapshot in told.items() if not snapshot.slot]:
            del self.snapshots[key]
        self.committed = committed


class TrackerProcess:
    """Fulfils `Store` and `Journal` for its tracker. Ends by a crash; the next one takes over."""

    def __init__(self, topics: Topics, server: RedisServer, clock: Clock, edge: Edge) -> None:
        self._topics = topics
        self._store = Store(server)
        self._edge = edge
        self._tracker = Tracker(self, self, clock, RULE)
        self._facts_at, self._lifecycle_at, self._beats_at = 0, 0, 0
        self._commits_id = ""
        self.acquire()

    def acquire(self) -> None:
        """Begin with the snapshots, and where the group stood when they were taken."""
        self._topics.owner = self
        self._commits_id = self._topics.commits_id
        self._facts_at, self._lifecycle_at = self._topics.committed
        self._beats_at = len(self._topics.beats)
        self._tracker.acquire(PARTITION, self._facts_at, self._topics.snapshots.values())

    def release(self) -> None:
        self._tracker.release(PARTITION)

    def feed(self, count: int) -> None:
        for event in self._topics.lifecycle[self._lifecycle_at :]:
            self._lifecycle_at += 1
            self._tracker.handle_lifecycle(PARTITION, event)
        for beat in self._topics.beats[self._beats_at :]:
            self._beats_at += 1
            self._tracker.handle_beat(PARTITION, beat)
        for fact in self._topics.facts[self._facts_at : self._facts_at + count]:
            self._tracker.handle_fact(PARTITION, self._facts_at, fact)
            self._facts_at += 1

    def flush(self) -> None:
        self._tracker.flush()

    def confirm(self) -> None:
        self._tracker.confirm()

    def checkpoint(self) -> None:
        self._tracker.save()

    def behind(self) -> int:
        return len(self._topics.facts) - self._facts_at

    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        self._edge("tracker.before_write")
        results = self._store.write(writes)
        self._edge("tracker.after_write")
        return results

    @property
    def topic_id(self) -> str:
        return self._commits_id

    def end(self, partition: int) -> int:
        if self._commits_id != self._topics.commits_id:
            raise Retryable("the commits topic is another one now")
        return len(self._topics.facts)

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        if positions[PARTITION] > self._facts_at:
            raise Retryable("only what was fed can be committed")
        committed = positions[PARTITION], self._lifecycle_at
        self._edge("tracker.save.before_commit")
        self._topics.transact(self, snapshots, committed)
        self._edge("tracker.save.answer_lost")
