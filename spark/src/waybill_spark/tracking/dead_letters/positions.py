"""The positions of dead records, as the fence of a journal has them."""

from collections.abc import Collection, Iterable, Iterator

from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.events import Range
from waybill_shared.contract.vectors import Vector
from waybill_spark.tracking.dead_letters.records import Without

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


def find_dead(
    dead: Iterable[DeadPositions], ranges: Iterable[Range], into: Collection[str]
) -> Without:
    """Return the records in the ranges that are dead for each of these sinks."""
    runs = {(run.topic_id, run.partition): run for run in ranges}
    lacking: dict[tuple[str, int, int], set[str | None]] = {}
    for topic_id, partition, offset, sink in (at for each in dead for at in positions_in(each)):
        run = runs.get((topic_id, partition))
        if run is not None and run.start <= offset < run.end:
            lacking.setdefault((run.topic, partition, offset), set()).add(sink)
    found: dict[tuple[str, int], set[int]] = {}
    for (topic, partition, offset), sinks in lacking.items():
        if None in sinks or (into and sinks.issuperset(into)):
            found.setdefault((topic, partition), set()).add(offset)
    return {place: frozenset(offsets) for place, offsets in found.items()}
