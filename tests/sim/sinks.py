"""Sinks as their adapters promise them: rows and fence in one step, older writers shut out.

Who may be interrupted says so: at each `edge` the world may crash or pause the caller.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from sim.effects import of_life
from sim.graves import REFUSED, Grave, Graves, fate
from sim.log import Cluster, Place, Row, Transaction
from sim.replay_log import ReplayLog
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import LossReason
from waybill_spark.tracking.outputs import SinkTopic, outputs_after
from waybill_spark.tracking.sink import RowsRefused, SinkLife, SinkSuperseded, Written
from waybill_spark.tracking.stopping import StageStopped

Edge = Callable[[str], None]
BUDGET = 1_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows for one sink, and for the checker: the records that were really read for them."""

    rows: tuple[Row, ...]
    read: tuple[Place, ...]

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    def to_batches(self) -> list["Batch"]:
        return [self]


def _whole(rows: Iterable[Batch] | None) -> Batch | None:
    """Here a batch always comes in one."""
    return None if rows is None else next(iter(rows))


class Witness(Protocol):
    """Sees every move of a fence at the moment it becomes true."""

    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None: ...

    def buried(self, grave: Grave) -> None: ...


@dataclass(slots=True)
class Table:
    """Rows by the fence key that wrote them, so that the owners of a table are told apart."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    fences: dict[str, Fence] = field(default_factory=dict)
    version: int = 0
    """Grows with each commit, whoever's it is."""


@dataclass(slots=True)
class Storage:
    """What outlives every driver: tables, the fences of Kafka sinks, who owns a transaction id."""

    cluster: Cluster
    witness: Witness
    dice: Random
    tables: dict[str, Table] = field(default_factory=dict)
    fences: dict[str, Fence] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    open: dict[str, Transaction] = field(default_factory=dict)
    seen: dict[tuple[str, int], int] = field(default_factory=dict)
    """By partition: how far every reader could see when somebody looked."""
    strangers: list[Transaction] = field(default_factory=list)
    calm: bool = False
    mood: int = 0
    budget: int = BUDGET
    """How many dead letters a stage may write after a start."""
    graves: Graves = field(default_factory=Graves)
    replays: ReplayLog = field(init=False)

    def __post_init__(self) -> None:
        self.replays = ReplayLog(self.cluster)

    def table(self, name: str) -> Table:
        return self.tables.setdefault(name, Table())

    def refusal(self, sink: str, batch: Batch | None) -> str | None:
        rows = () if batch is None else batch.rows
        bad = [row.number for row in rows if fate(self.mood, sink, row) == REFUSED]
        return f"{sink} refuses {bad}" if bad else None

    def refuse(self, sink: str, batch: Batch | None) -> None:
        said = self.refusal(sink, batch)
        if said is not None:
            raise RowsRefused(said, hint="")

    def end_strangers(self) -> None:
        for transaction in self.strangers:
            self.cluster.finish(transaction, committed=self.dice.random() < 0.5, promptly=True)
        self.strangers.clear()

    def abort_unowned(self) -> None:
        """What the broker does when a transaction has been open for too long."""
        for key in [*self.open]:
            self.cluster.finish(self.open.pop(key), committed=False, promptly=True)


class TableSink:
    """As the Iceberg sink: a commit requires the snapshot that its writer has seen."""

    def __init__(self, life: SinkLife, storage: Storage, table: str, edge: Edge) -> None:
        self.name, self.since, self.moved = life.name, life.since, life.moved
        self.key = life.key
        self._storage = storage
        self._table = storage.table(table)
        self._key = life.fence_key
        self._edge = edge
        self._seen: Fence | None = None
        self._version = 0

    def claim(self) -> None:
        self._version = self._table.version
        self._seen = self._table.fences.get(self._key)

    def last(self) -> Written | None:
        return None if self._seen is None else self._written(self._seen)

    def write(self, rows: Iterable[Batch] | None, fence: Fence) -> Written:
        self._edge(f"{self.name}.before_commit")
        held = self._seen
        if self._version != self._table.version:  # another writer has committed: all of it again
            held = self._table.fences.get(self._key)
            self._check_fence(held)
        batch = _whole(rows)
        self._storage.refuse(self.name, batch)
        self._commit(batch, fence)
        self._storage.witness.moved(self._key, held, fence, batch)
        self._edge(f"{self.name}.answer_lost")
        self._seen = fence
        return self._written(fence)

    def _written(self, fence: Fence) -> Written:
        return Written(fence=fence, version={"iceberg_snapshot_id": str(fence.batch.sequence)})

    def _check_fence(self, held: Fence | None) -> None:
        if held != self._seen:
            raise SinkSuperseded(f"sink {self.name}: its fence was moved by another")

    def _commit(self, rows: Batch | None, fence: Fence) -> None:
        if rows is not None:
            self._table.rows.setdefault(self._key, []).extend(rows.rows)
        self._table.fences[self._key] = fence
        self._table.version += 1
        self._version = self._table.version

    def find_refusal(self, rows: Iterable[Batch]) -> str | None:
        return self._storage.refusal(self.name, _whole(rows))

    def await_visible(self, fence: Fence) -> bool:
        return True

    def close(self) -> None:
        pass


class KafkaSink:
    """As the Kafka sink: rows and fence in a transaction that a newer claim shuts out."""

    def __init__(
        self, life: SinkLife, storage: Storage, topic: str, topic_id: str, edge: Edge
    ) -> None:
        self.name, self.since, self.moved = life.name, life.since, life.moved
        self.key = life.key
        self._storage = storage
        self._topic = topic
        self._topic_id = topic_id
        self._to = SinkTopic(topic=topic, topic_id=topic_id)
        self._key = life.fence_key
        self._edge = edge
        self._owner = -1

    def claim(self) -> None:
        """Ends what an earlier owner left open, and waits for the markers of what it decided."""
        self._owner = self._storage.owners.get(self._key, 0) + 1
        self._storage.owners[self._key] = self._owner
        left = self._storage.open.pop(self._key, None)
        if left is not None:
            self._storage.cluster.finish(left, committed=False, promptly=True)
        self._storage.cluster.write_markers()

    def last(self) -> Written | None:
        fence = self._storage.fences.get(self._key)
        return Written(fence=fence, version={}) if fence is not None else None

    def write(self, rows: Iterable[Batch] | None, fence: Fence) -> Written:
        self._check_owner()
        batch = _whole(rows)
        self._storage.refuse(self.name, batch)
        transaction = self._storage.open[self._key] = Transaction()
        try:
            placed = self._produce(transaction, batch.rows if batch is not None else ())
            if batch is not None:
                self._check_topic()
        except (Retryable, StageStopped):
            self._abort(transaction)
            raise
        self._edge(f"{self.name}.before_commit")
        self._check_owner()
        before = self._storage.fences.get(self._key)
        complete = replace(fence, outputs=outputs_after(fence.outputs, placed, self._to))
        self._commit(transaction, complete)
        self._storage.witness.moved(self._key, before, complete, batch)
        self._edge(f"{self.name}.answer_lost")
        return Written(fence=complete, version={})

    def find_refusal(self, rows: Iterable[Batch]) -> str | None:
        return self._storage.refusal(self.name, _whole(rows))

    def await_visible(self, fence: Fence) -> bool:
        self._storage.cluster.write_markers()
        self._check_topic()
        ends = {o.partition: o.end for o in fence.outputs if o.topic_id == self._topic_id}
        if self._hidden(ends):
            return False
        seen = self._storage.seen
        for number, end in ends.items():
            seen[self._topic_id, number] = max(end, seen.get((self._topic_id, number), 0))
        return True

    def close(self) -> None:
        pass

    def _hidden(self, ends: dict[int, int]) -> bool:
        partitions = self._storage.cluster.topics[self._topic].partitions
        return any(partitions[number].stable_end() < end for number, end in ends.items())

    def _produce(self, transaction: Transaction, rows: Iterable[Row]) -> dict[int, tuple[int, int]]:
        placed: dict[int, tuple[int, int]] = {}
        for row in rows:
            topic = self._storage.cluster.topics.get(self._topic)
            if topic is None:
                self._check_topic()  # a topic that is gone is no fault that passes
                raise Retryable(f"sink {self.name}: topic {self._topic} is unknown")
            number = row.number % len(topic.partitions)
            offset = transaction.append(topic.partitions[number], of_life(row, self.since))
            first, end = placed.get(number, (offset, offset + 1))
            placed[number] = (min(first, offset), max(end, offset + 1))
            self._edge(f"{self.name}.producing")
            self._check_owner()
        return placed

    def _commit(self, transaction: Transaction, fence: Fence) -> None:
        self._storage.open.pop(self._key, None)
        self._storage.fences[self._key] = fence
        promptly = self._storage.dice.random() < 0.7
        self._storage.cluster.finish(transaction, committed=True, promptly=promptly)

    def _abort(self, transaction: Transaction) -> None:
        if self._storage.open.get(self._key) is transaction:
            del self._storage.open[self._key]
            self._storage.cluster.finish(transaction, committed=False, promptly=True)

    def _check_owner(self) -> None:
        if self._storage.owners.get(self._key) != self._owner:
            raise SinkSuperseded(f"sink {self.name}: its transaction id has a newer owner")

    def _check_topic(self) -> None:
        now = self._storage.cluster.identify(self._topic)
        if now != self._topic_id:
            reason = LossReason.TOPIC_DELETED if now is None else LossReason.TOPIC_RECREATED
            raise StageStopped(reason, f"topic {self._topic} is now {now}", "restart --from")
