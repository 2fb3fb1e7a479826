"""Decides what a snapshot keeps of a pipeline: its slot, and as much of its history as has room.
And when one is due.

A slot of many partitions says each topic id a thousand times, so that its JSON is twenty times what
it is compressed. Whoever takes over reads many snapshots and unpacks the newest of each pipeline.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import (
    SLOT_VERSION,
    Entry,
    Saved,
    Slot,
    saved_from_json,
    saved_to_json,
)

HISTORY_MAX: Final = 64  # per pipeline; what a rebuilt slot can still tell after a restart
HISTORY_CHARACTERS_MAX: Final = 200_000  # a message of 1 MB has room for the slot, too
PACKED_CHARACTERS_MAX: Final = 900_000  # of a message of 1 MB, which is what topics take
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
    """The whole slot: who begins with it must judge as the tracker did that wrote it. What makes it
    grow has its limit in `core.hops`.

    A history that does not fit is left out. What is larger without one, as with thousands of
    partitions times sinks, Kafka does not take: the tracker tries again and goes on meanwhile, and
    the next one reads all commits since the last snapshot.
    """
    packed = _pack(slot, _newest(history))
    return packed if len(packed) <= PACKED_CHARACTERS_MAX else _pack(slot, ())


def unpack(snapshot: Snapshot) -> Saved:
    if snapshot.slot_version != SLOT_VERSION:
        raise RuntimeError(
            f"the snapshot of pipeline {snapshot.pipeline_uid} has version {snapshot.slot_version},"
            f" and this tracker reads {SLOT_VERSION}: start the Waybill that wrote it"
        )
    return saved_from_json(zlib.decompress(base64.b64decode(snapshot.slot)))


def _pack(slot: Slot, history: tuple[Entry, ...]) -> str:
    text = saved_to_json(Saved(slot=slot, history=history))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _newest(history: Sequence[Entry]) -> tuple[Entry, ...]:
    kept: list[Entry] = []
    room = HISTORY_CHARACTERS_MAX
    for entry in reversed(history):
        room -= len(entry.progress)
        if room < 0 or len(kept) == HISTORY_MAX:
            break
        kept.append(entry)
    return tuple(reversed(kept))
