"""Decides from which root records the records at a span of an inner topic were made.

The unit is the hop. All that is known of a record there is which batch of the earlier stage wrote
it, and what that batch read. Where the hop is not known yet, the answer names what is still open.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final

from waybill_shared.contract import vectors
from waybill_shared.contract.events import MARKER, InputDefinition
from waybill_shared.contract.slots import Hop
from waybill_shared.contract.topology import StageSink, inputs_by_id
from waybill_shared.contract.vectors import Span, TopicPartition
from waybill_shared.contract.words import LossReason
from waybill_token_tracker.core.graph import Graph, at_entrance
from waybill_token_tracker.core.losses import rows_between

FIRST: Final = Hop(sequence=-1, inputs={}, outputs={})
WRITTEN: Final = LossReason.SINK_TOPIC_RECREATED
Open = tuple[str, Span]
"""A sink that is not known to have written that far yet, by its key, and the span in its topic."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The sources of records: these root records, and whatever the unknown hops at `open` read."""

    roots: tuple[Span, ...] = ()
    open: tuple[Open, ...] = ()


class Origins:
    """The origins in one slot. Each hop is followed once, however many records of it are asked
    for."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._of_hops: dict[tuple[str, int], Origin] = {}
        self._ends: dict[tuple[str, TopicPartition], list[int]] = {}

    def read_by(self, source: InputDefinition, span: Span) -> Origin:
        """Return the origin of what a stage has read there."""
        if source.root:
            return Origin(roots=(span,))
        writers = self._graph.writers(source)
        return unite_origins(self.origin_of(writer, span) for writer in writers)

    def origin_of(self, writer: StageSink, span: Span) -> Origin:
        """Return the origin of what a sink has written there. What it has not reported yet is
        `open`."""
        ends = self._ends_of(writer, span.key)
        found = [
            self._of_hop(writer, at)
            for at in range(bisect_right(ends, span.start), bisect_left(ends, span.end) + 1)
            if at < len(ends) and vectors.overlap([span], self._rows(writer, at))
        ]
        known = ends[-1] + MARKER if ends and ends[-1] else 0
        if known < span.end:
            rest = Span(
                topic_id=span.topic_id,
                partition=span.partition,
                start=max(span.start, known),
                end=span.end,
            )
            found.append(Origin(open=((writer.key, rest),)))
        return unite_origins(found)

    def _ends_of(self, writer: StageSink, place: TopicPartition) -> list[int]:
        """Return by hop how far it has written to a partition."""
        key = (writer.key, place)
        if key not in self._ends:
            hops = self._graph.hops(writer.key)
            ends = (hop.outputs.get(place, 0) for hop in hops)
            self._ends[key] = [*accumulate(ends, max)]
        return self._ends[key]

    def _rows(self, writer: StageSink, at: int) -> tuple[Span, ...]:
        return rows_between(*self._hop(writer, at))

    def _hop(self, writer: StageSink, at: int) -> tuple[Hop, Hop]:
        """Return the hop before this one, and this one."""
        hops = self._graph.hops(writer.key)
        return (hops[at - 1] if at else FIRST), hops[at]

    def _of_hop(self, writer: StageSink, at: int) -> Origin:
        key = (writer.key, at)
        if key not in self._of_hops:
            sources = inputs_by_id(writer.stage)
            read = (
                self.read_by(sources[span.topic_id], span)
                for span in self._read_spans(writer, at)
                if span.topic_id in sources
            )
            before, hop = self._hop(writer, at)
            replayed = vectors.between(before.replayed, hop.replayed)
            there = vectors.without(replayed, self._unread(writer))
            letters = tuple(at_entrance(span, writer.stage) for span in there)
            self._of_hops[key] = unite_origins([*read, Origin(roots=letters)])
        return self._of_hops[key]

    def _read_spans(self, writer: StageSink, at: int) -> tuple[Span, ...]:
        """Return what a hop read, without what the stage never read. Records that were lost with a
        topic of the sink are set aside, too. But they had been written there, and some of them were
        read."""
        before, hop = self._hop(writer, at)
        start = vectors.join(self._graph.bases(writer.stage), before.inputs)
        return vectors.without(vectors.between(start, hop.inputs), self._unread(writer))

    def _unread(self, writer: StageSink) -> Iterator[Span]:
        aside = self._graph.state(writer.key).set_aside
        return chain.from_iterable(spans for why, spans in aside.items() if why != WRITTEN)


def unite_origins(origins: Iterable[Origin]) -> Origin:
    each = list(origins)
    roots = chain.from_iterable(origin.roots for origin in each)
    still_open = chain.from_iterable(origin.open for origin in each)
    return Origin(roots=vectors.merge_spans(roots), open=tuple(sorted(set(still_open))))
