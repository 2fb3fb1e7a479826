"""Keeps the hops of Kafka sinks in order, and limits their number.

A hop that is dropped is merged with the next one. At worst tokens then wait for the next one;
`reached` is never too large. But a loss in a merged hop is reported for the inputs of both. So
merged hops have about the same length, and those that the slowest reader reaches next stay exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from waybill_shared.contract.slots import Hop
from waybill_shared.contract.vectors import beyond, covers, join, meet, overlap

HOP_OFFSETS_MAX: Final = 12_288  # per pipeline, in hops ahead of readers; about 150 kB of a slot
HOPS_MIN: Final = 4  # per sink, ahead of readers: the two nearest, one between, and the newest
PASSED_OFFSETS_MAX: Final = 128  # per Kafka sink, in hops all readers are past; about 8 kB
COARSER: Final = 1.25  # from one try to the next, when there are too many

Hops = tuple[Hop, ...]
"""Hops of one sink, in the order of their inputs. There is one order, because every batch follows a
fence."""


def with_hop(hops: Hops, hop: Hop) -> Hops:
    """Insert a hop in order. If its batch is reported a second time with other outputs, keep the
    smaller outputs: they are enough."""
    at = len(hops)
    while at and _follows(hops[at - 1], hop):
        at -= 1
    before, after = hops[:at], hops[at:]
    hop = _with_replays(before, hop)
    if before and (before[-1].inputs, before[-1].sequence) == (hop.inputs, hop.sequence):
        before, hop = before[:-1], _least(before[-1], hop)
    near = _own_gaps((*before[-2:], hop, *after[:2]))
    return (*before[:-2], *_useful(near), *after[2:])


def _with_replays(before: Hops, hop: Hop) -> Hop:
    """Return the hop with the replays of those before it: its outputs contain theirs. A driver that
    has just started may not know yet that no more of them name the sink."""
    replayed = join(before[-1].replayed, hop.replayed) if before else hop.replayed
    return hop if replayed == hop.replayed else replace(hop, replayed=replayed)


def thin_out(sinks: Mapping[str, Hops], passed: Mapping[str, int]) -> dict[str, Hops]:
    """Return as many hops of each sink as there is room for. `passed` says by sink how many of them
    every reader is past.

    Hops are dropped only here, never later for a snapshot. A tracker that starts with a snapshot
    must have the hops that the earlier decisions used.
    """
    ahead = {key: hops[passed[key] :] for key, hops in sinks.items()}
    while sum(map(_size, ahead.values())) > HOP_OFFSETS_MAX:
        spare = [key for key, hops in ahead.items() if len(hops) > HOPS_MIN]
        if not spare:
            break
        largest = max(spare, key=lambda key: _size(ahead[key]))
        ahead[largest] = _merge(ahead[largest])
    return {key: _old(hops, passed[key]) + ahead[key] for key, hops in sinks.items()}


def _follows(known: Hop, hop: Hop) -> bool:
    """Return True if `known` belongs after `hop`. Where only the fence was moved, both have read
    the same. One of them may still name more: a topic that was created again, and of which nothing
    was read yet."""
    read, other = known.inputs, hop.inputs
    return covers(read, other) and (known.sequence > hop.sequence or not covers(other, read))


def _least(left: Hop, right: Hop) -> Hop:
    if left.outputs == right.outputs:
        return _with_replays((right,), left)
    return replace(
        left,
        outputs=meet(left.outputs, right.outputs),
        gaps=overlap(left.gaps, right.gaps),
        replayed=join(left.replayed, right.replayed),
    )


def _own_gaps(hops: Hops) -> Hops:
    """Remove from each hop but the first the gaps that the hop before it is past."""
    return hops[:1] + tuple(_without_old_gaps(before, hop) for before, hop in pairwise(hops))


def _without_old_gaps(before: Hop, hop: Hop) -> Hop:
    gaps = beyond(hop.gaps, before.outputs) if hop.gaps else ()
    return hop if gaps == hop.gaps else replace(hop, gaps=gaps)


def _useful(hops: Hops) -> Hops:
    """Keep the first and the last of neighbours between which nothing was written. A reader past
    one of them is past all. The first says which inputs wrote the rows that are there."""
    kept = hops[:1]
    for hop, after in pairwise(hops[1:]):
        if not kept[-1].outputs == hop.outputs == after.outputs:
            kept += (hop,)
    return kept + hops[1:][-1:]


def _merge(hops: Hops) -> Hops:
    """Return three quarters of the hops, so that merges are rare. The nearest ones stay as they
    are.

    Retention deletes the nearest first. A deletion cuts anywhere, so the others get one length.
    """
    room = max(HOPS_MIN, len(hops) * 3 // 4)
    exact = max(2, room // 4)
    near, far = hops[:exact], hops[exact:]
    length = max(1, far[-1].sequence - far[0].sequence) / room
    return near + _space_out(far, room - exact, lambda _: length)


def _old(hops: Hops, passed: int) -> Hops:
    """Return a few of the hops that all readers are past, at least the last one; the older they
    are, the fewer.

    A reader that is added later may find that the topic has lost old records. If one hop covered
    all older batches, all of them would be reported as lost.
    """
    room = PASSED_OFFSETS_MAX // max(1, _size(hops[-1:]))
    if not passed or not hops[-1].outputs:
        return ()
    if room <= 1:
        return hops[passed - 1 : passed]
    newest = hops[-1].sequence
    return _space_out(hops[:passed], room, lambda hop: max(1, newest - hop.sequence) / room)


def _space_out(hops: Hops, room: int, length: Callable[[Hop], float]) -> Hops:
    """Return the first hop, the last, and those between them that are far enough apart. `length`
    says how many batches may become one from a hop on."""
    factor = 1.0
    while len(hops) > max(2, room):
        kept = [hops[0]]
        for hop, after in pairwise(hops[1:]):
            if after.sequence - kept[-1].sequence > length(kept[-1]) * factor:
                kept.append(hop)
        hops = (*kept, hops[-1])
        factor *= COARSER
    return hops


def _size(hops: Hops) -> int:
    """Return the size in offsets, as if all hops were as large as the newest, with as many gaps as
    outputs."""
    if not hops:
        return 0
    newest = hops[-1]
    return len(hops) * max(1, len(newest.inputs) + 2 * len(newest.outputs))
