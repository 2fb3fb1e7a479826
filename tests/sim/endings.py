"""What must hold in the end, when all is calm: every token has its end, every row is there once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from random import Random
from typing import Protocol

from sim.checked_world import Around
from sim.checker import Checker
from sim.clients import Issued
from sim.contents import Contents, fence_key
from sim.driver import Driver
from sim.effects import effects_beside, required
from sim.hosts import Hosts
from sim.log import Place, Row
from sim.losses import Losses
from sim.sizes import check_sizes
from waybill_shared.contract.events import (
    Commit,
    Definition,
    Fact,
    PipelineRecord,
    Range,
    StageDefinition,
)
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.vectors import Vector
from waybill_token_tracker.core.facts import apply_fact

FIRST_GENERATION = 1
ORDER_SHARE = 0.1  # to apply all facts in other orders takes as long as the scenario


class Ended(Around, Protocol):
    checker: Checker
    issued: list[Issued]
    disturbed: bool

    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    def facts_of(self, uid: str) -> Sequence[Fact]: ...

    def hosts_of(self, uid: str) -> Hosts: ...

    def unfinished(self) -> Sequence[Issued]: ...

    def alive(self, uid: str | None = None) -> list[Driver]: ...


class End:
    """A world after its last step."""

    def __init__(self, world: Ended) -> None:
        self._world = world
        self._contents = Contents(world.cluster, world.storage)
        self._report = world.checker.report

    def check(self) -> None:
        world = self._world
        for issued in world.unfinished():
            self._report("I2", f"a token of {issued.uid} ({issued.places or 'all'}) has no end")
        for uid in dict.fromkeys(record.pipeline_uid for record in world.records):
            self._check_once(self._world.newest(uid))
            if world.dice.random() < ORDER_SHARE:
                self._check_order(uid, world.facts_of(uid))
        if not world.disturbed:
            self._check_rewound()
            for record in {r.pipeline_uid: r for r in world.records}.values():
                if record.pipeline_uid not in world.checker.fences.skipped:
                    self._check_all_arrived(record)
        self._check_commands()
        check_sizes(world, self._report)
        Losses(world).check()

    def _check_rewound(self) -> None:
        """I4: a wanted rewind was done in every sink, and each wanted record was read in it."""
        for uid in dict.fromkeys(record.pipeline_uid for record in self._world.records):
            record = self._world.newest(uid)
            for rewind in record.rewinds if record.wants_run else ():
                for stage in record.stages:
                    if (stage.name, stage.since) == (rewind.stage, rewind.since):
                        self._check_read_again(record, stage, rewind)

    def _check_read_again(
        self, record: PipelineRecord, stage: StageDefinition, rewind: StageRewind
    ) -> None:
        dead = {grave.place for grave in self._world.storage.graves.all}
        for sink in (sink for sink in stage.sinks if not sink.bases):  # others may have come later
            key = fence_key(record.pipeline_uid, stage, sink)
            fence = self._contents.fence(key)
            if fence is None or fence.rewind < rewind.number:
                self._report("I4", f"{key} was not rewound: {rewind}")
                continue
            numbers = range(rewind.number, fence.rewind + 1)
            fences = self._world.checker.fences
            read = dead.union(*(fences.read_in(key, number) for number in numbers))
            aside = [run for each in fence.set_aside for run in each.ranges]
            for (topic_id, partition), start in rewind.starts.items():
                for place, _ in self._world.cluster.incarnations[topic_id].rows():
                    wanted = place.partition == partition and place.offset >= start
                    if wanted and place not in read and not _is_in(place, aside):
                        self._report("I4", f"{key} did not read {place} again")

    def _check_commands(self) -> None:
        """I13: commands take effect in their order, and a refused one has none."""
        reached: dict[str, int] = {}
        for record in self._world.records:
            uid, at = record.pipeline_uid, record.commanded_at
            if at < reached.get(uid, at):
                self._report("I13", f"command {at} takes effect on {uid} after {reached[uid]}")
            if at in self._world.hosts_of(uid).operations.refused:
                self._report("I13", f"command {at} was refused and took effect on {uid}")
            reached[uid] = max(at, reached.get(uid, at))

    def _check_once(self, record: PipelineRecord) -> None:
        """I5, by what stands in the sinks. `Fences` counts by what they read, also in rewinds."""
        if self._world.checker.fences.rewound:
            return
        for stage in record.stages:
            for sink in stage.sinks:
                counts = Counter(self._contents.rows(record.pipeline_uid, stage, sink))
                doubled = [row for row, count in counts.items() if count > 1]
                if doubled:
                    self._report("I5", f"{stage.name}/{sink.name} holds twice: {doubled[:3]}")

    def _check_all_arrived(self, record: PipelineRecord) -> None:
        """I4: where nothing was ever removed, every record of the inputs is in every sink."""
        for stage, source in ((s, i) for s in record.stages for i in s.inputs if i.root):
            for place, row in self._world.cluster.incarnations[source.topic_id].rows():
                base = source.bases.get(place[:2], 0)
                if stage.since == FIRST_GENERATION and place.offset >= base:
                    self._check_arrived(record, row, place)

    def _check_arrived(self, record: PipelineRecord, row: Row, place: Place) -> None:
        what, uid = (place.topic_id, row), record.pipeline_uid
        dead = self._world.storage.graves.dead_of(uid)
        due = effects_beside(uid, record.stages, FIRST_GENERATION, what, dead)
        for stage, sink in required(record, FIRST_GENERATION, place.topic_id):
            seen = self._contents.visible(record.pipeline_uid, stage, sink)
            if not due[stage.name, sink.name] <= seen:
                self._report("I4", f"{place} never came to {stage.name}/{sink.name}")

    def _check_order(self, uid: str, facts: Sequence[Fact]) -> None:
        """I11: commits in another order, and some of them twice, give the same frontiers."""
        ordered = frontiers(facts)
        mixed = frontiers(shuffled(facts, self._world.dice))
        if mixed != ordered:
            wrong = sorted(key for key in ordered if ordered[key] != mixed.get(key))
            self._report("I11", f"another order of the same facts changes {wrong}")


def frontiers(facts: Iterable[Fact]) -> dict[str, Vector]:
    """By sink, how far the tracker says it has come after these facts."""
    slot: Slot | None = None
    for fact in facts:
        before = slot or Slot(tenant=fact.tenant, pipeline_uid=fact.pipeline_uid)
        slot = apply_fact(before, fact).slot
    return {key: state.frontier for key, state in slot.sinks.items()} if slot is not None else {}


def shuffled(facts: Sequence[Fact], dice: Random) -> list[Fact]:
    """Commits in any order, between the definitions as they came; behind a deletion none counts."""
    commits = [fact for fact in until_deleted(facts) if isinstance(fact.body, Commit)]
    again = [*commits, *dice.sample(commits, len(commits) // 4)]
    dice.shuffle(again)
    mixed: list[Fact] = []
    for fact in until_deleted(facts):
        if isinstance(fact.body, Commit):
            mixed.append(again.pop())
        else:
            mixed.append(fact)
    return mixed + again


def until_deleted(facts: Sequence[Fact]) -> list[Fact]:
    return [*takewhile(lambda f: not (isinstance(f.body, Definition) and f.body.deleted), facts)]


def _is_in(place: Place, ranges: Iterable[Range]) -> bool:
    return any(
        (run.topic_id, run.partition) == place[:2] and run.start <= place.offset < run.end
        for run in ranges
    )
