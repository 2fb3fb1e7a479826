"""I15: what a run that has finished has read, and what of it Kafka knows.

A run has read all that its inputs had when its driver began, and when any start was asked for that
was answered. All sinks have it, what one stage wrote is read by the next, and Kafka has the commit
of each sink: so every token of it can become final without a driver.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Protocol

from sim.contents import Contents, fence_key
from sim.log import Cluster
from sim.operations import Operations
from sim.sinks import Storage
from waybill_shared.contract.events import Commit, Fact, Fence, InputDefinition, PipelineRecord
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.slots import key_of_commit
from waybill_shared.contract.vectors import Vector, join


class Partition(Protocol):
    operations: Operations


class Around(Protocol):
    cluster: Cluster
    storage: Storage

    def newest(self, uid: str) -> PipelineRecord: ...

    def facts_of(self, uid: str) -> list[Fact]: ...

    def hosts_of(self, uid: str) -> Partition: ...


class Runs:
    def __init__(self, world: Around, report: Callable[[str, str], None]) -> None:
        self._world = world
        self._report = report
        self._contents = Contents(world.cluster, world.storage)
        self._begun: dict[str, Vector] = {}
        self._asked: dict[str, dict[str, Vector]] = {}
        """By pipeline and command, where its inputs ended when a start was asked for."""

    def begun(self, uid: str) -> None:
        """Note where everything ends when a driver begins."""
        self._begun[uid] = join(self._begun.get(uid, {}), self._ends())

    def asked(self, uid: str, command: str) -> None:
        """Note where everything ends when a start is asked for."""
        self._asked.setdefault(uid, {})[command] = self._ends()

    def rests(self, record: PipelineRecord, phase_from: str | None) -> None:
        """Check a pipeline that is `Finished` now. With a schedule it may be so without a run."""
        ran = record.manifest.model.schedule is None or phase_from == Phase.FINISHING
        if ran:
            self._finished(record.pipeline_uid)

    def _finished(self, uid: str) -> None:
        record, due = self._world.newest(uid), self._begun[uid]
        replies = self._world.hosts_of(uid).operations.replies
        for command, ends in self._asked.get(uid, {}).items():
            if command in replies and replies[command][0] == "done":
                due = join(due, ends)
        for what in self._unread(record, due):
            self._report("I15", f"{record.name} has finished, and {what}")
        for what in self._unreported(record):
            self._report("I15", f"{record.name} has finished, and {what}")

    def has_unread(self, record: PipelineRecord) -> bool:
        """Whether its inputs have more than its sinks, or a sink is to read something again."""
        fences = self._fences(record).values()
        again = any(fence is not None and fence.rewound for fence in fences)
        return again or any(self._unread(record, self._ends()))

    def _unread(self, record: PipelineRecord, due: Vector) -> Iterator[str]:
        """What a sink has not read of the roots, or of what the pipeline wrote itself."""
        written: Mapping[tuple[str, int], int] = {
            (output.topic_id, output.partition): output.end
            for fence in self._fences(record).values()
            if fence is not None
            for output in fence.outputs
        }
        for stage in record.stages:
            for sink in stage.sinks:
                fence = self._fences(record)[fence_key(record.pipeline_uid, stage, sink)]
                for source in stage.inputs:
                    frontier = source.bases if fence is None else join(source.bases, fence.frontier)
                    for place, end in (due if source.root else written).items():
                        if self._is_read(source, place) and frontier.get(place, 0) < end:
                            yield f"{stage.name}/{sink.name} lacks {place} up to {end}"

    def _is_read(self, source: InputDefinition, place: tuple[str, int]) -> bool:
        """Whether that is the input, and it is there still."""
        return place[0] == source.topic_id == self._world.cluster.identify(source.topic)

    def _unreported(self, record: PipelineRecord) -> Iterator[str]:
        """What a sink has and Kafka does not know. A claim that has moved alone says nothing, and
        where a stage began is in its definition.
        """
        uid = record.pipeline_uid
        known: dict[str, Vector] = {
            fence_key(uid, stage, sink): reduce(join, (i.bases for i in stage.inputs))
            for stage in record.stages
            for sink in stage.sinks
        }
        for fact in self._world.facts_of(record.pipeline_uid):
            if isinstance(fact.body, Commit):
                commit = fact.body
                key = f"{fact.pipeline_uid}/{key_of_commit(commit)}"
                known[key] = join(known.get(key, {}), commit.frontier)
        for key, fence in self._fences(record).items():
            for place, end in (fence.frontier if fence is not None else {}).items():
                if known.get(key, {}).get(place, 0) < end:
                    yield f"Kafka lacks {place} up to {end} of {key}"

    def _fences(self, record: PipelineRecord) -> dict[str, Fence | None]:
        keys = (fence_key(record.pipeline_uid, t, k) for t in record.stages for k in t.sinks)
        return {key: self._contents.fence(key) for key in keys}

    def _ends(self) -> Vector:
        """Where each partition ends for its readers."""
        return {
            (topic.topic_id, number): partition.stable_end()
            for topic in self._world.cluster.topics.values()
            for number, partition in enumerate(topic.partitions)
        }
