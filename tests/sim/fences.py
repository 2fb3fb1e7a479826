"""I4, I5, I7, I8: what the sinks take, batch by batch; their fences move in steps without a gap."""

from collections.abc import Callable, Iterable
from typing import Protocol

from sim.contents import Contents, fence_keys
from sim.flow import Taken
from sim.graves import Grave
from sim.log import Cluster, Place, Row
from sim.replay_log import PLACE as REPLAYS_PLACE
from sim.replay_log import REPLAYS_ID
from sim.sinks import Batch, Storage
from waybill_shared.contract.events import Fence, PipelineRecord, Range
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.vectors import TopicPartition, covers
from waybill_shared.contract.words import LossReason


class Around(Protocol):
    cluster: Cluster
    storage: Storage

    def newest(self, uid: str) -> PipelineRecord: ...

    def base(self, uid: str, stage: str, sink: str, place: TopicPartition) -> int: ...

    def life_of(self, uid: str, sink: str) -> str | None:
        """The key of the stage that has this sink."""

    def say(self, text: str) -> None: ...


class Fences:
    """Fulfils `Witness`."""

    def __init__(self, world: Around, report: Callable[[str, str], None]) -> None:
        self.taken: Taken = {}
        self._world = world
        self._report = report
        self._contents = Contents(world.cluster, world.storage)
        self._written: dict[str, set[Row]] = {}
        self._read: dict[tuple[str, int], set[Place]] = {}
        self._replayed: dict[str, set[Place]] = {}
        self.rewound: set[str] = set()
        """The keys of sinks that were rewound, and the uids of their pipelines."""
        self.skipped: set[str] = set()
        """The uids of pipelines that skip records in a sink."""

    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        if before is not None:
            self._check_forward(key, before, after)
        self._check_replays(key, before, after, batch)
        if after.rewind > (0 if before is None else before.rewind):
            self._world.say(f"{key} #{after.batch.sequence} is rewound to {after.position}")
            self.rewound |= {key, key.partition("/")[0]}
            if batch is not None:
                self._report("I8", f"{key} is rewound with a batch")
            self._check_skipped(key, before, after)
            if any(r.reason == LossReason.SKIPPED_BY_OPERATOR for r in after.set_aside):
                self.skipped.add(key.partition("/")[0])
            return
        if before is not None and batch is None and before.position == after.position:
            self._world.say(f"{key} #{after.batch.sequence} is held")
            return
        if batch is not None and _is_replay(before, after, batch):
            self._take_replay(key, after, batch)
            return
        self._world.say(f"{key} #{after.batch.sequence} takes {_runs(after.inputs)}")
        self._check_contiguous(key, before, after)
        if batch is None:
            return
        self._check_open(key)
        self._check_read(key, after, batch)
        self.taken.setdefault(key, []).append((after.batch.sequence, batch))
        self._check_once(key, after, batch)

    def _take_replay(self, key: str, after: Fence, batch: Batch) -> None:
        """I5: each letter once, into the sinks that lack it. I4: and none that died again."""
        self._world.say(f"{key} #{after.batch.sequence} takes the letters of {batch.read}")
        self._check_open(key)
        self.taken.setdefault(key, []).append((after.batch.sequence, batch))
        again = self._replayed.setdefault(key, set()).intersection(batch.read)
        if again:
            self._report("I5", f"{key} gets {again} twice")
        self._replayed[key].update(batch.read)
        asked, sink = self._world.storage.replays.asked, key.partition("/")[2]
        for place in batch.read:
            if sink not in asked[place.offset].sinks:
                self._report("I5", f"{key} does not lack {place}, and gets it")
        for place in self._dead(key).intersection(batch.read):
            self._report("I4", f"{key} takes {place}, which is buried")

    def _check_replays(
        self, key: str, before: Fence | None, after: Fence, batch: Batch | None
    ) -> None:
        """I4: a sink passes no letter that names it, but those that it takes, and dead ones. I8: it
        never goes back."""
        low = 0 if before is None else before.replayed.get(REPLAYS_PLACE, 0)
        high = after.replayed.get(REPLAYS_PLACE, 0)
        if high < low:
            self._report("I8", f"{key}: its replays go back from {low} to {high}")
        uid, _, sink = key.partition("/")
        due = {
            Place(*REPLAYS_PLACE, offset)
            for offset, asked in self._world.storage.replays.asked.items()
            if low <= offset < high and asked.pipeline_uid == uid and sink in asked.sinks
        }
        for place in due.difference(() if batch is None else batch.read):
            aside = [run for each in after.set_aside for run in each.ranges]
            lost = _past(aside, REPLAYS_PLACE, place.offset) > place.offset
            if not lost and place not in self._dead(key, maybe=True):
                self._report("I4", f"{key} passes {place}, and did not get it")

    def _check_once(self, key: str, after: Fence, batch: Batch) -> None:
        """I5: each record once in each rewind; and each row once, if nobody was rewound."""
        read = self._read.setdefault((key, after.rewind), set())
        again = read.intersection(batch.read)
        if again:
            self._report("I5", f"{key} reads {again} twice in rewind {after.rewind}")
        read.update(batch.read)
        if self.rewound:
            return
        written = self._written.setdefault(key, set())
        doubled = [row for row in batch.rows if row in written]
        if doubled or len(set(batch.rows)) < len(batch.rows):
            self._report("I5", f"{key} gets rows again: {doubled}")
        written.update(batch.rows)

    def read_in(self, key: str, rewind: int) -> set[Place]:
        """What a sink has read since a rewind."""
        return self._read.get((key, rewind), set())

    def buried(self, grave: Grave) -> None:
        """I5: once; I4: and never what is there already."""
        self._world.say(f"{grave.stage} buries {grave.place} for {grave.sink or 'all'}")
        of = (grave.stage, grave.sink, grave.place)
        first, *again = [g for g in self._graves(grave.uid) if (g.stage, g.sink, g.place) == of]
        if again and not self._came_later(first):
            self._report("I5", f"{grave.place} is buried twice by {grave.stage}")
        present = fence_keys(self._world.newest(grave.uid))
        for key, taken in self.taken.items():
            uid, _, sink = key.partition("/")
            if key not in present:  # it was removed, and nobody asks what it lacks
                continue
            holds = any(grave.place in batch.read for _, batch in taken)
            if key in self.rewound:  # it lived at its first look, and that counts
                continue
            if holds and uid == grave.uid and self._lies(grave, uid, sink):
                self._report("I4", f"{key} holds {grave.place}, which is buried now")

    def _came_later(self, grave: Grave) -> bool:
        """Whether a sink of the stage came later: it takes again what others had long ago."""
        stages = self._world.newest(grave.uid).stages
        (stage,) = [each for each in stages if stage_key(each) == grave.stage]
        return any(sink.since > grave.generation for sink in stage.sinks)

    def _graves(self, uid: str) -> list[Grave]:
        return [g for g in self._world.storage.graves.all if g.uid == uid]

    def _dead(self, key: str, *, maybe: bool = False) -> set[Place]:
        """What never comes to that sink; or `maybe` does not."""
        uid, _, sink = key.partition("/")
        return {g.place for g in self._graves(uid) if self._lies(g, uid, sink, maybe=maybe)}

    def _lies(self, grave: Grave, uid: str, sink: str, *, maybe: bool = False) -> bool:
        """Whether what is buried is dead for a sink, by its key: for one of the same life of the
        stage."""
        if grave.sink is not None:
            return grave.sink == sink
        since = int(sink.rpartition("@")[2])
        old = maybe or since <= grave.generation
        return old and grave.stage == self._world.life_of(uid, sink)

    def _check_forward(self, key: str, before: Fence, after: Fence) -> None:
        """I8: frontiers and numbers of rewinds never go back."""
        if not covers(after.frontier, before.frontier):
            self._report("I8", f"{key}: its frontier goes back from {before.frontier}")
        if after.rewind < before.rewind:
            self._report("I8", f"{key}: rewind {after.rewind} is done after {before.rewind}")

    def _check_skipped(self, key: str, before: Fence | None, after: Fence) -> None:
        """I8: where a rewind moves a frontier, all between is set aside as skipped."""
        uid, stage, sink = key.split("/")
        frontier = {} if before is None else before.frontier
        found = after.set_aside  # a first fence may also lack what lies before its sink
        if before is not None:
            found = tuple(r for r in found if r.reason == LossReason.SKIPPED_BY_OPERATOR)
        aside = [run for each in found for run in each.ranges]
        for place, end in after.frontier.items():
            at = frontier.get(place, self._world.base(uid, stage, sink, place))
            if at != end and _past(aside, place, at) != end:
                self._report("I8", f"{key}: a rewind moves {place} to {end} without a reason")

    def _cannot_come_again(
        self, place: TopicPartition, end: int, before: Fence | None, aside: Iterable[Range]
    ) -> bool:
        """Whether the sink has what it was to read again, and that is gone from its topic."""
        had = 0 if before is None else before.frontier.get(place, 0)
        start = self._world.cluster.incarnations[place[0]].partitions[place[1]].start
        return end <= min(had, start) or (end > had and end == _past(aside, place, had))

    def _check_contiguous(self, key: str, before: Fence | None, after: Fence) -> None:
        """I8: every step of the position is a range that was taken, or set aside, from its end."""
        uid, stage, sink = key.split("/")
        held = before.position if before is not None else {}
        taken = {(r.topic_id, r.partition): r for r in after.inputs}
        aside = [r for each in after.set_aside for r in each.ranges]
        for place, end in after.position.items():
            at = held.get(place, self._world.base(uid, stage, sink, place))
            run = taken.pop(place, None)
            if run is not None and run.start != at:
                self._report("I8", f"{key} stood at {at} of {place} and takes {_runs([run])}")
            at = run.end if run is not None else at
            within = at <= end <= _past_all(aside, place, at)
            if not within and not self._cannot_come_again(place, end, before, aside):
                self._report("I8", f"{key} moves from {at} to {end} of {place} without a reason")
        if taken:
            self._report("I8", f"{key} takes what its position does not pass: {taken}")

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
        aside = [run for each in after.set_aside for run in each.ranges]
        for place in batch.read:
            if _past(aside, (place.topic_id, place.partition), place.offset) > place.offset:
                self._report("I4", f"{key} takes {place}, which was set aside")
        for place in self._dead(key).intersection(batch.read):
            self._report("I4", f"{key} takes {place}, which is buried")
        for place in due - set(batch.read) - self._dead(key, maybe=True):
            self._report("I4", f"{key} says that it took {place}, and did not read it")


def _is_replay(before: Fence | None, after: Fence, batch: Batch) -> bool:
    """Whether it is of letters; maybe all of them have died again."""
    if batch.read:
        return all(place.topic_id == REPLAYS_ID for place in batch.read)
    held = before is not None and before.position == after.position
    return held and before is not None and before.replayed != after.replayed


def _past(aside: Iterable[Range], place: TopicPartition, at: int) -> int:
    """Behind what was set aside at `at`, if anything was."""
    own = [r for r in aside if (r.topic_id, r.partition) == place and r.start <= at < r.end]
    return max((r.end for r in own), default=at)


def _past_all(aside: Iterable[Range], place: TopicPartition, at: int) -> int:
    """The same, where one range that was set aside follows another, each for its own reason."""
    ranges = [*aside]
    while (end := _past(ranges, place, at)) > at:
        at = end
    return at


def _runs(ranges: Iterable[Range]) -> str:
    return " ".join(f"{r.topic}[{r.partition}]{r.start}-{r.end}" for r in ranges) or "nothing"
