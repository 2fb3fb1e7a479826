"""Decides which questions a change of a pipeline can give another outcome. Pure.

An outcome follows from the view of its pipeline. Mostly only `reached` moves there, and a token
depends only on the offsets of its own spans. So it can name the position that each sink must reach
before the outcome can change.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import replace

from waybill_shared.contract.tokens import Part
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.vectors import (
    Span,
    TopicPartition,
    Vector,
    covers,
    topics_deleted_in,
)
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.replays import enter
from waybill_status.core.outcomes.views import View

SinkPartition = tuple[str, TopicPartition]
"""A sink, by its key, and a partition of a root topic."""
Needs = Mapping[SinkPartition, int]
"""By sink and partition: the position that the sink must be past before the outcome can change."""


def needs_of(claim: Claim, view: View) -> dict[SinkPartition, int]:
    """Return what `claim`, judged by `view`, waits for while views stay `alike`."""
    needs: dict[SinkPartition, int] = {}
    spans = [span for part in claim.parts for span in _spans_of(part, view)]
    for sink, reached in view.reached.items():
        for span in spans:
            arrived = reached.get(span.key)
            if arrived is not None and arrived < span.end:
                # An empty span waits until its end is passed.
                place, beyond = (sink, span.key), min(max(span.start, arrived), span.end - 1)
                needs[place] = min(beyond, needs.get(place, beyond))
    return needs


def _spans_of(part: Part, view: View) -> Iterable[Span]:
    if not part.into or view.definition is None:
        return part.spans
    known = Topology(view.definition.stages).with_removed(view.removals)
    return enter(part.spans, part.into, known)


def alike(view: View, before: View) -> bool:
    """Return True if sinks have moved forward in partitions that they had, and nothing else has
    changed."""
    return (
        replace(view, reached=before.reached) == before
        and view.reached.keys() == before.reached.keys()
        and all(_farther(reached, before.reached[sink]) for sink, reached in view.reached.items())
    )


def _farther(reached: Vector, before: Vector) -> bool:
    """Return True if every partition is at least as far as before, and the same topics are deleted.
    A sink past a deleted topic is past partitions that nobody named."""
    return (
        reached.keys() == before.keys()
        and covers(reached, before)
        and topics_deleted_in(reached) == topics_deleted_in(before)
    )


class Index:
    """The needs of all questions to one pipeline. A change is compared with the nearest needs
    only."""

    def __init__(self) -> None:
        self._needs: dict[int, Needs] = {}
        self._waiting: dict[SinkPartition, list[tuple[int, int]]] = {}

    def put(self, number: int, needs: Needs) -> None:
        """Replace the needs of `number`."""
        self.drop(number)
        if needs:
            self._needs[number] = needs
        for place, beyond in needs.items():
            insort(self._waiting.setdefault(place, []), (beyond, number))

    def drop(self, number: int) -> None:
        for place, beyond in self._needs.pop(number, {}).items():
            waiting = self._waiting.get(place, [])
            at = bisect_left(waiting, (beyond, number))
            if waiting[at : at + 1] == [(beyond, number)]:  # else `take` removed it
                del waiting[at]
            if not waiting:
                self._waiting.pop(place, None)

    def take(self, view: View) -> set[int]:
        """Return the questions that some sink is far enough for, and remove them until they are put
        again."""
        used: set[int] = set()
        for (sink, partition), waiting in self._waiting.items():
            end = view.reached.get(sink, {}).get(partition, 0)
            reached = bisect_left(waiting, (end,))
            used.update(number for _, number in waiting[:reached])
            del waiting[:reached]
        return used

    def __len__(self) -> int:
        """Return how many needs it remembers: none of questions that were dropped."""
        return len(self._needs) + sum(map(len, self._waiting.values()))
