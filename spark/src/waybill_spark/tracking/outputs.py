"""Decides what a fence says about the offsets of a Kafka sink's rows.

Never does I/O.

All of it is cumulative, so that a report that was lost is covered by any later one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.events import Gap, Output

GAPS_MAX: Final = 4  # per partition, after the first; so many reports in a row may be lost

Placed = Mapping[int, tuple[int, int]]
"""By partition: the offset of the first row of a batch, and the end of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTopic:
    topic: str
    topic_id: str


def outputs_after(before: tuple[Output, ...], placed: Placed, to: SinkTopic) -> tuple[Output, ...]:
    """Return the outputs after a batch.

    A partition without rows in it keeps its end, and so does a deleted topic of that name.
    """
    others = tuple(o for o in before if o.topic_id != to.topic_id)
    known = {o.partition: o for o in before if o.topic_id == to.topic_id}
    written = {
        partition: _extend(known.get(partition), partition, rows, to)
        for partition, rows in placed.items()
    }
    kept = {partition: replace(output, first=output.end) for partition, output in known.items()}
    return others + tuple(output for _, output in sorted((kept | written).items()))


def _extend(before: Output | None, partition: int, rows: tuple[int, int], to: SinkTopic) -> Output:
    first, end = rows
    last_end, gaps = (0, ()) if before is None else (before.end, before.gaps)
    if last_end < first:
        gaps = (*gaps, Gap(start=last_end, end=first))
    return Output(
        topic=to.topic,
        topic_id=to.topic_id,
        partition=partition,
        first=first,
        end=end,
        gaps=_thin_gaps(gaps),
    )


def _thin_gaps(gaps: tuple[Gap, ...]) -> tuple[Gap, ...]:
    """Return the newest gaps, and the one before the sink's first row: retention deletes that part
    of the topic first.
    """
    before = tuple(gap for gap in gaps[:1] if gap.start == 0)
    return before + gaps[len(before) :][-GAPS_MAX:]
