"""Records that stages cannot process: which those are, and where they are buried.

What a stage or a sink makes of a record depends on a mood that changes, as when a constraint was
changed: a record may die at one look and live at the next. What does not fit dies by the mood in
which its driver began, as if that had a manifest of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sim.effects import Dead
from sim.log import Place, Row
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadPositions
from waybill_shared.contract.events import Fact, Fence, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import key_of, stage_key
from waybill_shared.contract.vectors import Vector
from waybill_spark.kafka.dead_letter_journal import facts_of
from waybill_spark.tracking.dead_letters.letters import letter_of
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord
from waybill_spark.tracking.sink import SinkSuperseded

MOODS = 7
MALFORMED, FAILING, REFUSED = 1, 2, 3
DEAD_TOPIC = "dead"


def fate(mood: int, where: str, row: Row) -> int:
    """In mood 0 nobody dies."""
    return (row.number * 3 + len(where) + mood) % MOODS if mood else 0


@dataclass(frozen=True, slots=True)
class Grave:
    """`stage` and `sink` are their keys in the slot. A sink that came after `generation` may begin
    behind it or before it, and what is said of all sinks is said of those that there were."""

    uid: str
    generation: int
    stage: str
    sink: str | None
    place: Place
    row: Row


class Mourner(Protocol):
    """Sees every burial at the moment it becomes true."""

    def buried(self, grave: Grave) -> None: ...


@dataclass(slots=True)
class Graves:
    """What outlives every driver."""

    all: list[Grave] = field(default_factory=list)
    fences: dict[str, Fence] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)

    def dead_of(self, uid: str) -> Dead:
        """What died in a pipeline: by stage, and in single sinks."""
        found: dict[tuple[str, str | None], set[Row]] = {}
        for grave in self.all:
            if grave.uid == uid:
                found.setdefault((grave.stage, grave.sink), set()).add(grave.row)

        def dead(stage: StageDefinition, sink: SinkDefinition | None) -> frozenset[Row]:
            key = None if sink is None else key_of(stage, sink)
            return frozenset(found.get((stage_key(stage), key), ()))

        return dead


class SimJournal:
    """As the journal in Kafka: records, facts and fence in a transaction that a newer claim shuts
    out. `row_at` looks a record up where it stands."""

    def __init__(
        self,
        uid: str,
        stage: StageDefinition,
        graves: Graves,
        *,
        mourner: Mourner,
        row_at: Callable[[Place], Row],
        append: Callable[[Fact], None],
        edge: Callable[[str], None],
    ) -> None:
        self._uid = uid
        self._stage = stage
        self._key = f"{uid}/{stage_key(stage)}"
        self._graves = graves
        self._mourner = mourner
        self._row_at = row_at
        self._append = append
        self._edge = edge
        self._owner = -1

    def claim(self) -> None:
        self._owner = self._graves.owners.get(self._key, 0) + 1
        self._graves.owners[self._key] = self._owner

    def last(self) -> Fence | None:
        return self._graves.fences.get(self._key)

    def past(self, starts: Vector) -> tuple[DeadPositions, ...]:
        of = (self._uid, stage_key(self._stage))
        return tuple(
            DeadPositions(
                topic_id=grave.place.topic_id,
                partition=grave.place.partition,
                offsets=(grave.place.offset,),
                sink=grave.sink,
            )
            for grave in self._graves.all
            if (grave.uid, grave.stage) == of
            and grave.place.offset >= starts.get(grave.place[:2], grave.place.offset + 1)
        )

    def write(self, records: Sequence[DeadLetterRecord], fence: Fence) -> Fence:
        self._check_owner()
        self._edge(f"{self._stage.name}.journal.before_commit")
        self._check_owner()
        letters = [
            letter_of(dead, self._source_id(dead), (DEAD_TOPIC, 0, len(self._graves.all) + number))
            for number, dead in enumerate(records)
        ]
        named = (self._stage.name, self._stage.since, stage_key(self._stage))
        facts = list(facts_of(named, letters, fence, most=2))
        last = fence.batch.sequence + len(facts) - 1
        moved = replace(fence, batch=replace(fence.batch, sequence=last))
        self._graves.fences[self._key] = moved
        for fact in facts:
            self._append(fact)
        for letter in letters:
            self._bury(letter, fence.generation)
        self._edge(f"{self._stage.name}.journal.answer_lost")
        return moved

    def close(self) -> None:
        pass

    def _bury(self, letter: DeadLetter, generation: int) -> None:
        at = letter.replayed or letter
        place = Place(at.topic_id, at.partition, at.offset)
        row = self._row_at(place)
        key = stage_key(self._stage)
        grave = Grave(self._uid, generation, key, letter.sink, place, row)
        self._graves.all.append(grave)
        self._mourner.buried(grave)

    def _source_id(self, dead: DeadLetterRecord) -> str:
        ids = {source.topic: source.topic_id for source in self._stage.inputs}
        at = dead.record.replayed
        return ids[dead.record.topic] if at is None else at.source_id

    def _check_owner(self) -> None:
        if self._graves.owners.get(self._key) != self._owner:
            raise SinkSuperseded(f"journal of {self._stage.name}: it has a newer owner")
