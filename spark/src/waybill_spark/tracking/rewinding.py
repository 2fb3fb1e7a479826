"""Decides where the next batch of a sink begins after a rewind. Never does I/O.

A rewind has a number, and each sink remembers the newest that was done in it. At the start of a
run, before any query, this happens for each stage that has a rewind with a higher number:

1. The records of it that died before are read from the facts, and written to its journal again. So
   batches that come again leave them out, and nothing that a token called dead is written.
2. The fence of each sink is moved alone: its position goes where `rewound_position` says, and its
   frontier stays. A driver that fails between two sinks leaves the second one to the next start.
3. `resuming` finds that the checkpoint does not fit the positions, and moves it aside.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from waybill_shared.contract.events import SetAside
from waybill_shared.contract.vectors import ENDLESS, TopicPartition, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """The newest rewind of a stage: partitions that `starts` does not name stay where they are."""

    number: int
    starts: Vector


def rewound_position(
    starts: Vector, *, bases: Vector, frontier: Vector, set_aside: Iterable[SetAside]
) -> dict[TopicPartition, int]:
    """Return where a sink begins again in the partitions of `starts`.

    That is never below its base or below what was set aside, because nothing that a token called
    lost may be written. It is never beyond the frontier either: nothing is skipped by a rewind.
    """
    floor = dict(bases)
    for run in (run for each in set_aside for run in each.ranges):
        place = (run.topic_id, run.partition)
        floor[place] = max(floor.get(place, 0), run.end)
    return {
        place: min(max(start, floor.get(place, 0)), frontier[place])
        for place, start in starts.items()
        if frontier.get(place, ENDLESS) < ENDLESS  # nothing of a deleted topic comes again
    }
