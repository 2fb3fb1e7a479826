"""I4: what is called lost is really lost, in the very sink for which it was said.

A token that is told `lost` says which offsets and why, and the slot by which it was told in which
sink. Of what can never be read, as it is gone or came before the sink, no row may be there; where
several ways lead there, not those of all ways. Of what was cut off, by a deletion or a removal,
some sink must have stood before it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from sim.checked_world import Around
from sim.checker import Checker, covered
from sim.clients import Issued
from sim.contents import Contents, fence_key
from sim.effects import awaited
from sim.flow import Flow
from sim.log import Place
from waybill_shared.contract.events import Fact
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.words import LossReason
from waybill_status.core.outcomes.judgements import LostSpan
from waybill_status.core.outcomes.views import SlotReading

CUT_OFF: Final = frozenset({LossReason.PIPELINE_DELETED, LossReason.SINK_REMOVED})
"""Behind a hop all that comes behind the first batch that has not come through is cut off, too."""


class Ended(Around, Protocol):
    checker: Checker
    issued: list[Issued]

    def facts_of(self, uid: str) -> Sequence[Fact]: ...


class Losses:
    def __init__(self, world: Ended) -> None:
        self._world = world
        self._contents = Contents(world.cluster, world.storage)
        self._flows: dict[str, Flow] = {}

    def check(self) -> None:
        for issued in self._world.issued:
            told = self._world.checker.lost.get(issued.text)
            if told is not None:
                for lost in told.lost:
                    self._check(issued, lost, told.reading)

    def _check(self, issued: Issued, lost: LostSpan, reading: SlotReading) -> None:
        for place, _ in covered(self._contents, self._world.open(issued)):
            if not self._within(place, lost):
                continue
            accused = [*_accused(issued, place, reading)]
            for key in accused:
                if self._is_written_again(issued.uid, key):
                    continue
                if self._flow(issued.uid).arrived(place, key):
                    self._report(place, lost, key)
            if (
                not accused
                and lost.reason == LossReason.BEFORE_START
                and self._began_later(issued, place)
            ):
                continue
            if not accused and self._came_through(issued, place, lost.reason):
                self._report(place, lost, "every sink")

    def _is_written_again(self, uid: str, key: str) -> bool:
        """Whether the stage may get it as a new record, of a stage before it that reads again."""
        if uid not in self._world.checker.fences.rewound:
            return False
        name = key.split("/")[1]
        records = (record for record in self._world.records if record.pipeline_uid == uid)
        stages = (
            stage for record in records for stage in record.stages if first_name(stage) == name
        )
        return any(not source.root for stage in stages for source in stage.inputs)

    def _began_later(self, issued: Issued, place: Place) -> bool:
        """Whether a stage that the token was for began behind the record. It may be gone since."""
        mine = (record for record in self._world.records if record.pipeline_uid == issued.uid)
        return any(
            source.bases.get(place[:2], 0) > place.offset
            for record in mine
            if record.generation >= issued.generation
            for stage in record.stages
            if any(sink.since <= issued.generation for sink in stage.sinks)
            for source in stage.inputs
        )

    def _came_through(self, issued: Issued, place: Place, reason: str) -> bool:
        """To every sink that was the last to be waited for, by the stages that led there then."""
        for record in reversed(self._world.records):
            if record.pipeline_uid == issued.uid and record.generation >= issued.generation:
                last = [*awaited(record, issued.generation, place.topic_id)]
                if last:
                    flow = self._flow(issued.uid)
                    keys = [fence_key(issued.uid, stage, sink) for stage, sink in last]
                    return all(
                        flow.arrived(place, key)
                        and (reason not in CUT_OFF or flow.passed(place, key))
                        for key in keys
                    )
        return False

    def _report(self, place: Place, lost: LostSpan, where: str) -> None:
        detail = f"{place} is said to be lost, {lost.reason}, and is in {where}"
        self._world.checker.report("I4", detail)

    def _within(self, place: Place, lost: LostSpan) -> bool:
        topic = self._world.cluster.incarnations[place.topic_id].name
        there = (topic, place.partition) == (lost.topic, lost.partition)
        return there and lost.start <= place.offset < lost.end

    def _flow(self, uid: str) -> Flow:
        if uid not in self._flows:
            world = self._world
            facts, taken = world.facts_of(uid), world.checker.fences.taken
            self._flows[uid] = Flow(uid, world.records, facts, taken, world.cluster, self._contents)
        return self._flows[uid]


def _accused(issued: Issued, place: Place, reading: SlotReading) -> Iterator[str]:
    """The sinks that are as old as the token and for which it was told lost."""
    assert reading.slot is not None
    for key, losses in reading.losses.items():
        holes = losses.of(place[:2], reading.reached[key])
        old = int(key.rpartition("@")[2]) <= issued.generation
        if old and any(hole.start <= place.offset < hole.end for _, hole in holes):
            yield f"{reading.slot.pipeline_uid}/{key}"
