"""Decides whose outcome a change of a pipeline can have changed. Pure.

An outcome follows from the view of its pipeline. Mostly only `reached` moves in it, and of that a
token sees nothing but the offsets of its own spans: so it can say how far which sink must come.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import replace

from waybill_shared.contract.vectors import (
    TopicPartition,
    Vector,
    covers,
    gone_topics,
)
from waybill_status.core.judge import Claim
from waybill_status.core.views import View

SinkPartition = tuple[str, TopicPartition]
"""A sink, by its key, and a partition of a root topic."""
Needs = Mapping[SinkPartition, int]
"""By place, what the sink must have come beyond before the outcome can be another one."""


def needs_of(claim: Claim, view: View) -> dict[SinkPartition, int]:
    """What `claim`, judged by `view`, waits for in pipelines that are `alike`."""
    needs: dict[SinkPartition, int] = {}
    spans = [span for part in claim.parts for span in part.spans]
    for sink, reached in view.reached.items():
        for span in spans:
            arrived = reached.get(span.key)
            if arrived is not None and arrived < span.end:
                # A span that holds nothing waits for its end to be passed by all that lies below.
                place, beyond = (sink, span.key), min(max(span.start, arrived), span.end - 1)
                needs[place] = min(beyond, needs.get(place, beyond))
    return needs


def alike(view: View, before: View) -> bool:
    """Whether sinks have come farther in what they had reached, and nothing else has changed."""
    return (
        replace(view, reached=before.reached) == before
        and view.reached.keys() == before.reached.keys()
        and all(_farther(reached, before.reached[sink]) for sink, reached in view.reached.items())
    )


def _farther(reached: Vector, before: Vector) -> bool:
    """Place by place. Who passes a topic that is gone passes partitions that nobody named."""
    return (
        reached.keys() == before.keys()
        and covers(reached, before)
        and gone_topics(reached) == gone_topics(before)
    )


class Index:
    """Who needs what of one pipeline, so that a change is compared with the nearest needs only."""

    def __init__(self) -> None:
        self._needs: dict[int, Needs] = {}
        self._waiting: dict[SinkPartition, list[tuple[int, int]]] = {}

    def put(self, number: int, needs: Needs) -> None:
        """What `number` needs from now on, in place of what it needed."""
        self.drop(number)
        if needs:
            self._needs[number] = needs
        for place, beyond in needs.items():
            insort(self._waiting.setdefault(place, []), (beyond, number))

    def drop(self, number: int) -> None:
        for place, beyond in self._needs.pop(number, {}).items():
            waiting = self._waiting.get(place, [])
            at = bisect_left(waiting, (beyond, number))
            if waiting[at : at + 1] == [(beyond, number)]:  # else it was taken
                del waiting[at]
            if not waiting:
                self._waiting.pop(place, None)

    def take(self, view: View) -> set[int]:
        """Those for whom some sink has come far enough; each once, until it is put again."""
        taken: set[int] = set()
        for (sink, partition), waiting in self._waiting.items():
            end = view.reached.get(sink, {}).get(partition, 0)
            reached = bisect_left(waiting, (end,))
            taken.update(number for _, number in waiting[:reached])
            del waiting[:reached]
        return taken

    def __len__(self) -> int:
        """How much it remembers: nothing of those that were dropped."""
        return len(self._needs) + sum(map(len, self._waiting.values()))
