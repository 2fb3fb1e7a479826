"""The positions of dead records, as the fence of a journal has them."""

from collections.abc import Iterable, Iterator

from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.vectors import Vector

Position = tuple[str, int, int, str | None]
"""Topic id, partition, offset, and the only sink that lacks it."""


def positions_in(dead: DeadPositions) -> Iterator[Position]:
    for offset in dead.offsets:
        yield dead.topic_id, dead.partition, offset, dead.sink


def ahead(position: Position, reached: Vector) -> bool:
    topic_id, partition, offset, _ = position
    return offset >= reached.get((topic_id, partition), 0)


def group(positions: Iterable[Position]) -> tuple[DeadPositions, ...]:
    groups: dict[tuple[str, int, str | None], set[int]] = {}
    for topic_id, partition, offset, sink in positions:
        groups.setdefault((topic_id, partition, sink), set()).add(offset)
    ordered = sorted(groups, key=lambda group: (group[0], group[1], group[2] or ""))
    return tuple(
        DeadPositions(
            topic_id=topic_id,
            partition=partition,
            offsets=tuple(sorted(groups[topic_id, partition, sink])),
            sink=sink,
        )
        for topic_id, partition, sink in ordered
    )
