"""Keeps the hops of Kafka sinks in order and few.

A hop that is dropped becomes one with the next. Tokens wait for that one at worst; `reached` is
never too large. What is lost of the one is told of both: so they are as alike as can be, and those
that the slowest reader comes to next stay as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from waybill_shared.contract.events import from_vector, to_vector
from waybill_shared.contract.slots import Hop
from waybill_shared.contract.vectors import beyond, covers, meet, overlap

HOP_OFFSETS_MAX: Final = 12_288  # per pipeline, in hops ahead of readers; some 900 kB of a slot
HOPS_MIN: Final = 4  # per sink, ahead of readers: the two nearest, one between, and the newest
PASSED_OFFSETS_MAX: Final = 128  # per Kafka sink, in hops behind all readers; some 8 kB of a slot
COARSER: Final = 1.25  # from one try to the next, when there are too many

Hops = tuple[Hop, ...]
"""Of one sink, in the order of their inputs: one order because every batch follows a fence."""


def with_hop(hops: Hops, hop: Hop) -> Hops:
    """Of a batch that was reported twice, with other outputs, the smaller outputs are enough."""
    at = len(hops)
    while at and _follows(hops[at - 1], hop):
        at -= 1
    before, after = hops[:at], hops[at:]
    if before and (before[-1].inputs, before[-1].sequence) == (hop.inputs, hop.sequence):
        before, hop = before[:-1], _least(before[-1], hop)
    near = _own_gaps((*before[-2:], hop, *after[:2]))
    return (*before[:-2], *_useful(near), *after[2:])


def few(sinks: Mapping[str, Hops], passed: Mapping[str, int]) -> dict[str, Hops]:
    """As many as have room. So many of each sink are `passed`: behind every reader.

    Nothing is dropped later, for a snapshot: who begins with one must have what was judged by.
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
    """Where only the fence was moved both have taken the same, though one of them may name more: a
    topic that was created anew, and of which nothing was taken yet."""
    taken, other = to_vector(known.inputs), to_vector(hop.inputs)
    return covers(taken, other) and (known.sequence > hop.sequence or not covers(other, taken))


def _least(left: Hop, right: Hop) -> Hop:
    if left.outputs == right.outputs:
        return left
    return replace(
        left,
        outputs=from_vector(meet(to_vector(left.outputs), to_vector(right.outputs))),
        gaps=overlap(left.gaps, right.gaps),
    )


def _own_gaps(hops: Hops) -> Hops:
    """Each but the first without those gaps that the hop before it is past."""
    return hops[:1] + tuple(_behind(before, hop) for before, hop in pairwise(hops))


def _behind(before: Hop, hop: Hop) -> Hop:
    gaps = beyond(hop.gaps, to_vector(before.outputs)) if hop.gaps else ()
    return hop if gaps == hop.gaps else replace(hop, gaps=gaps)


def _useful(hops: Hops) -> Hops:
    """Of neighbours between which nothing was written the first and the last are enough.

    Whoever is past one is past all of them. The first says which inputs did write what is there.
    """
    kept = hops[:1]
    for hop, after in pairwise(hops[1:]):
        if not kept[-1].outputs == hop.outputs == after.outputs:
            kept += (hop,)
    return kept + hops[1:][-1:]


def _merge(hops: Hops) -> Hops:
    """Three quarters of them, so that it is seldom done; the nearest of them stay as they are.

    Retention takes what is nearest. A deletion cuts anywhere, so the others get one length.
    """
    room = max(HOPS_MIN, len(hops) * 3 // 4)
    exact = max(2, room // 4)
    near, far = hops[:exact], hops[exact:]
    length = max(1, far[-1].sequence - far[0].sequence) / room
    return near + _space_out(far, room - exact, lambda _: length)


def _old(hops: Hops, passed: int) -> Hops:
    """A few of those that are passed, the fewer the longer ago.

    A reader that comes later may find that the topic has lost what is old. Were there one hop for
    all that was written before, all would be lost with it.
    """
    room = PASSED_OFFSETS_MAX // max(1, _size(hops[-1:]))
    if room <= 1 or not passed or not hops[-1].outputs:
        return ()
    newest = hops[-1].sequence
    return _space_out(hops[:passed], room, lambda hop: max(1, newest - hop.sequence) / room)


def _space_out(hops: Hops, room: int, length: Callable[[Hop], float]) -> Hops:
    """The first, the last, and those between them from which on so many batches would be one."""
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
    """In offsets, if all are as large as the newest, with as many gaps as outputs."""
    if not hops:
        return 0
    newest = hops[-1]
    return len(hops) * max(1, len(newest.inputs) + 2 * len(newest.outputs))
