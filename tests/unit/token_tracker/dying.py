"""A pipeline some of whose records die: which, and of which root records they came. The oracle for
entries of dead records. Knows nothing of hops."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from builders import make_fact
from message_builders import make_letter
from unit.token_tracker.flow import ROOTS, Flow, Place, StageShape, Take
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters
from waybill_shared.contract.slots import DeadEntry

LETTERS_MAX: Final = 2  # of a fact, so that a batch may need several


@dataclass
class Dying(Flow):
    dead: set[tuple[str, Place]] = field(default_factory=set)
    """By stage, which did not process them."""
    _took: dict[str, list[set[Place]]] = field(default_factory=dict, repr=False)
    """By stage and batch: every record of it."""
    _numbers: dict[str, int] = field(default_factory=dict, repr=False)

    def dead_below(self, row: Place) -> Iterator[tuple[str, Place]]:
        """What died of all that came of a record, itself too."""
        for stage in self.stages:
            if (stage.name, row) in self.dead:
                yield stage.name, row
            for below in self._rows.get((stage.name, row), []):
                yield from self.dead_below(below)

    def beside(self, row: Place) -> set[Place]:
        """The root records of the batches without which `row` would not be there."""
        if row[0] in ROOTS:
            return {row}
        found: set[Place] = set()
        for stage, batches in self._took.items():
            for batch in batches:
                if any(row in self._rows.get((stage, above), []) for above in batch):
                    found |= {root for above in batch for root in self.beside(above)}
        return found

    def _living(self, stage: StageShape, take: Take, batch: list[Place]) -> list[Place]:
        self._took.setdefault(stage.name, []).append({*batch})
        dead = [row for number, row in enumerate(batch) if number in take.dead]
        self.dead |= {(stage.name, row) for row in dead}
        for first in range(0, len(dead), LETTERS_MAX):
            letters = tuple(map(_letter, dead[first : first + LETTERS_MAX]))
            number = self._numbers[stage.name] = self._told_dead(stage.name) + 1
            told = DeadLetters(stage=stage.name, since=1, sequence=number, letters=letters)
            self.facts.append(make_fact(told))
        return [row for row in batch if row not in dead]

    def _told_dead(self, stage: str) -> int:
        return self._numbers.get(stage, 0)


def tells(entry: DeadEntry, stage: str, root: Place) -> bool:
    """That of this record something died in that stage."""
    topic_id, partition, offset = root
    return (entry.stage, entry.topic_id, entry.partition) == (
        f"{stage}@1",
        topic_id,
        partition,
    ) and entry.start <= offset < entry.end


def _letter(row: Place) -> DeadLetter:
    topic_id, partition, offset = row
    return make_letter(offset, topic_id=topic_id, partition=partition)
