"""Keeps the hops of one Kafka sink in order and few.

A hop that is dropped makes tokens wait for a later one at worst; `reached` is never too large.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from shared.events import from_vector, to_vector
from shared.slots import Hop
from shared.vectors import covers, meet

HOPS_MAX: Final = 512  # per Kafka sink; dropping one only makes tokens wait for a later one
PASSED_OFFSETS_MAX: Final = 128  # per Kafka sink, in hops behind all readers; some 8 kB of a slot


def with_hop(hops: tuple[Hop, ...], hop: Hop) -> tuple[Hop, ...]:
    """In the order of their inputs, which is one order because every batch follows a fence."""
    kept = _useful(_placed(hops, hop))
    return tuple(kept) if len(kept) <= HOPS_MAX else thinned(kept)


def thinned(hops: Sequence[Hop]) -> tuple[Hop, ...]:
    """About half of them, the first and the newest among those."""
    return (*hops[:1], *hops[2::2], *_last(hops))


def without_passed(hops: tuple[Hop, ...], passed: int) -> tuple[Hop, ...]:
    """All but the first `passed`, which are behind every reader, and a few of those.

    A reader that comes later may find that the topic has lost what is old. Were there one hop for
    all that was written before, all would be lost with it.
    """
    old, newest = [*hops[:passed]], hops[-1].sequence
    room = PASSED_OFFSETS_MAX // _size(hops[-1])
    if room <= 1 or not hops[-1].outputs:
        return hops[passed:]

    def missed(at: int) -> float:
        """How much more would be one hop, beside how long ago that was."""
        before = old[at - 1].sequence
        return (old[at + 1].sequence - before) / max(1, newest - before)

    while len(old) > room:
        del old[min(range(1, len(old) - 1), key=missed)]
    return (*old, *hops[passed:])


def _size(hop: Hop) -> int:
    return max(1, len(hop.inputs) + len(hop.begins) + len(hop.outputs))


def _placed(hops: tuple[Hop, ...], hop: Hop) -> list[Hop]:
    """Of a batch that was reported twice, with other outputs, the smaller outputs are enough."""
    kept: list[Hop] = []
    placed = False
    for known in hops:
        if (known.inputs, known.sequence) == (hop.inputs, hop.sequence):
            kept.append(_least(known, hop))
            placed = True
        elif not placed and _follows(known, hop):
            kept += [hop, known]
            placed = True
        else:
            kept.append(known)
    return kept if placed else [*kept, hop]


def _follows(known: Hop, hop: Hop) -> bool:
    if known.inputs == hop.inputs:  # the fence was moved alone
        return known.sequence > hop.sequence
    return covers(to_vector(known.inputs), to_vector(hop.inputs))


def _least(left: Hop, right: Hop) -> Hop:
    return replace(
        left,
        begins=from_vector(meet(to_vector(left.begins), to_vector(right.begins))),
        outputs=from_vector(meet(to_vector(left.outputs), to_vector(right.outputs))),
    )


def _useful(hops: list[Hop]) -> list[Hop]:
    """Of neighbours between which nothing was written the first and the last are enough.

    Whoever is past one is past all of them. The first says which inputs did write what is there.
    """
    kept = hops[:1]
    for hop, after in pairwise(hops[1:]):
        if not kept[-1].outputs == hop.outputs == after.outputs:
            kept.append(hop)
    return kept + hops[1:][-1:]


def _last(hops: Sequence[Hop]) -> Sequence[Hop]:
    """The newest hop survives thinning, which keeps every second one."""
    return hops[-1:] if len(hops) % 2 == 0 else ()
