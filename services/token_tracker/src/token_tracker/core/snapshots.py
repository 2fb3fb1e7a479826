"""Decides what a snapshot keeps of a pipeline: its slot, as much of its history as has room, and as
many of its hops; and when one is due.

A slot of many partitions says each topic id a thousand times, so that its JSON is twenty times what
it is compressed. Whoever takes over reads many snapshots and unpacks the newest of each pipeline.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from shared.events import Snapshot
from shared.slots import (
    SLOT_VERSION,
    Entry,
    Saved,
    SinkState,
    Slot,
    saved_from_json,
    saved_to_json,
)
from token_tracker.core.hops import thinned

HISTORY_MAX: Final = 64  # per pipeline; what a rebuilt slot can still tell after a restart
HISTORY_CHARACTERS_MAX: Final = 200_000  # a message of 1 MB has room for the slot, too
PACKED_CHARACTERS_MAX: Final = 900_000  # of a message of 1 MB, which is what topics take
HOPS_MIN: Final = 2  # the first and the newest are always kept
TAIL_MAX: Final = 2_000  # messages of one partition that a takeover may have to read again
AGE_MS_MAX: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRule:
    """How far back a fact may stand that is in no snapshot, in messages and in time.

    Commits are kept for 30 days: what is older must be in a snapshot, however little happens.
    """

    tail_max: int = TAIL_MAX
    age_ms_max: int = AGE_MS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaved:
    """Of what changed a pipeline since its last snapshot: where the first stands, and when it came.

    A transition is `urgent`: its own offset is committed with the next save.
    """

    position: int
    since_ms: int
    urgent: bool = False

    def due(self, position: int, now_ms: int, rule: SnapshotRule) -> bool:
        old = now_ms - self.since_ms >= rule.age_ms_max
        return self.urgent or old or position - self.position >= rule.tail_max


def pack(slot: Slot, history: Sequence[Entry]) -> str:
    """Without a hop tokens wait for a later one at worst; without a snapshot they wait for ever."""
    packed = _packed(slot, _newest(history))
    while len(packed) > PACKED_CHARACTERS_MAX and any(_spare(s) for s in slot.sinks.values()):
        slot = replace(slot, sinks={key: _thinner(state) for key, state in slot.sinks.items()})
        packed = _packed(slot, _newest(history))
    return packed


def unpack(snapshot: Snapshot) -> Saved:
    if snapshot.slot_version != SLOT_VERSION:
        raise RuntimeError(
            f"the snapshot of pipeline {snapshot.pipeline_uid} has version {snapshot.slot_version},"
            f" and this tracker reads {SLOT_VERSION}: start the Waybill that wrote it"
        )
    return saved_from_json(zlib.decompress(base64.b64decode(snapshot.slot)))


def _packed(slot: Slot, history: tuple[Entry, ...]) -> str:
    text = saved_to_json(Saved(slot=slot, history=history))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _spare(state: SinkState) -> bool:
    return len(state.hops) > HOPS_MIN


def _thinner(state: SinkState) -> SinkState:
    return replace(state, hops=thinned(state.hops)) if _spare(state) else state


def _newest(history: Sequence[Entry]) -> tuple[Entry, ...]:
    kept: list[Entry] = []
    room = HISTORY_CHARACTERS_MAX
    for entry in reversed(history):
        room -= len(entry.progress)
        if room < 0 or len(kept) == HISTORY_MAX:
            break
        kept.append(entry)
    return tuple(reversed(kept))
