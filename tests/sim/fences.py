"""I4, I5, I7, I8: what the sinks take, batch by batch; their fences move in steps without a gap."""

from collections.abc import Callable, Iterable
from typing import Protocol

from sim.contents import Contents, fence_keys
from sim.flow import Taken
from sim.log import Cluster, Place, Row
from sim.sinks import Batch, Storage
from waybill_shared.contract.events import (
    Fence,
    PipelineRecord,
    Range,
    to_vector,
)
from waybill_shared.contract.vectors import TopicPartition


class Around(Protocol):
    cluster: Cluster
    storage: Storage

    def newest(self, uid: str) -> PipelineRecord: ...

    def base(self, uid: str, stage: str, sink: str, place: TopicPartition) -> int: ...

    def say(self, text: str) -> None: ...


class Fences:
    """Fulfils `Witness`."""

    def __init__(self, world: Around, report: Callable[[str, str], None]) -> None:
        self.taken: Taken = {}
        self._world = world
        self._report = report
        self._contents = Contents(world.cluster, world.storage)
        self._written: dict[str, set[Row]] = {}

    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        self._world.say(f"{key} #{after.sequence} takes {_runs(after.inputs)}")
        self._check_contiguous(key, before, after)
        if batch is None:
            return
        self._check_open(key)
        self._check_read(key, after, batch)
        self.taken.setdefault(key, []).append((after.sequence, batch))
        written = self._written.setdefault(key, set())
        doubled = [row for row in batch.rows if row in written]
        if doubled or len(set(batch.rows)) < len(batch.rows):
            self._report("I5", f"{key} gets rows again: {doubled}")
        written.update(batch.rows)

    def _check_contiguous(self, key: str, before: Fence | None, after: Fence) -> None:
        """I8: every step of the frontier is a range that was taken, or set aside, from its end."""
        uid, stage, sink = key.split("/")
        held = to_vector(before.frontier) if before is not None else {}
        taken = {(r.topic_id, r.partition): r for r in after.inputs}
        aside = [r for each in after.set_aside for r in each.ranges]
        for place, end in to_vector(after.frontier).items():
            at = held.get(place, self._world.base(uid, stage, sink, place))
            run = taken.pop(place, None)
            if run is not None and run.start != at:
                self._report("I8", f"{key} stood at {at} of {place} and takes {_runs([run])}")
            at = _past(aside, place, run.end if run is not None else at)
            if at != end:
                self._report("I8", f"{key} moves from {at} to {end} of {place} without a reason")
        if taken:
            self._report("I8", f"{key} takes what its frontier does not pass: {taken}")

    def _check_open(self, key: str) -> None:
        """I4: what goes is closed before that is said: nothing comes there that was told lost."""
        record = self._world.newest(key.partition("/")[0])
        if record.closed or key not in fence_keys(record):
            self._report("I4", f"{key} takes a batch behind its end")

    def _check_read(self, key: str, after: Fence, batch: Batch) -> None:
        """I7, I4: a batch holds the committed records of its ranges' topics, and no others."""
        due = {
            Place(run.topic_id, run.partition, offset)
            for run in after.inputs
            for offset, entry in self._contents.entries(
                run.topic_id, run.partition, run.start, run.end
            )
        }
        ids = {run.topic_id for run in after.inputs}
        for place in set(batch.read) - due:
            what = "of another topic" if place.topic_id not in ids else "outside of its ranges"
            self._report("I7" if place.topic_id not in ids else "I8", f"{key} takes {place} {what}")
        for place in due - set(batch.read):
            self._report("I4", f"{key} says that it took {place}, and did not read it")


def _past(aside: Iterable[Range], place: TopicPartition, at: int) -> int:
    """Behind what was set aside at `at`, if anything was."""
    own = [r for r in aside if (r.topic_id, r.partition) == place and r.start <= at < r.end]
    return max((r.end for r in own), default=at)


def _runs(ranges: Iterable[Range]) -> str:
    return " ".join(f"{r.topic}[{r.partition}]{r.start}-{r.end}" for r in ranges) or "nothing"
