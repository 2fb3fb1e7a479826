"""`waybill.replays` as the simulation knows it: one partition for all pipelines."""

from random import Random
from typing import Final

from sim.graves import Grave
from sim.log import Cluster, Partition, Place, Row, Topic
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.replays import LetterReplay
from waybill_spark.tracking.replaying import Letter, Replays

REPLAYS: Final = "waybill.replays"
REPLAYS_ID: Final = "cmVwbGF5cy5yZXBsYXlzLg"
PLACE: Final = (REPLAYS_ID, 0)
ANSWER: Final = Row(-1)
"""Of a message that is no letter."""


class ReplayLog:
    """Each letter is there as the row that died, so that whoever looks a place of it up finds
    that. No fault hits the topic.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.asked: dict[int, LetterReplay] = {}
        """By the offset of its message."""
        self.replayed: set[Grave] = set()
        self.gone: set[LetterId] = set()
        """Letters that their topics do not hold any more."""
        self._partition = Partition()
        cluster.incarnations[REPLAYS_ID] = Topic(REPLAYS, REPLAYS_ID, [self._partition])

    def append(self, asked: LetterReplay, row: Row) -> int:
        offset = self._partition.append(row)
        self.asked[offset] = asked
        return offset

    def append_answer(self) -> None:
        self._partition.append(ANSWER)

    def source_of(self, place: Place) -> Place:
        """Return where a record died first, if it died in a replay."""
        return Place(*self.asked[place.offset].source) if place.topic_id == REPLAYS_ID else place

    def has_more(self, uid: str, start: int) -> bool:
        return any(self._is_after(uid, start, offset) for offset in reversed(self.asked))

    def read(self, uid: str, start: int, dice: Random) -> Replays:
        """Return the next messages of a pipeline; the driver sees some of them at once."""
        mine = [
            Letter(offset=offset, asked=asked)
            for offset, asked in self.asked.items()
            if self._is_after(uid, start, offset)
        ]
        letters = mine[: dice.randint(1, len(mine))]
        return Replays(
            topic=REPLAYS,
            topic_id=REPLAYS_ID,
            partition=0,
            letters=letters,
            end=letters[-1].offset + 1,
        )

    def _is_after(self, uid: str, start: int, offset: int) -> bool:
        return offset >= start and self.asked[offset].pipeline_uid == uid
