"""Decides what a snapshot keeps of a pipeline: its slot, and as much of its history as there is
room for. Also decides when a snapshot is due.

A slot of many partitions repeats each topic id a thousand times. So its JSON is twenty times as
large as its compressed form. A tracker that takes over reads many snapshots and decompresses the
newest of each pipeline.
"""

import base64
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from waybill_shared.contract import slots
from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import DeadEntry, Entry, Saved, Slot

HISTORY_MAX: Final = 64  # per pipeline; the batches that a rebuilt slot has after a restart
HISTORY_CHARACTERS_MAX: Final = 200_000  # a message of 1 MB has room for the slot, too
PACKED_CHARACTERS_MAX: Final = 900_000  # of a message of 1 MB, the most that topics accept
CHUNK_BYTES_MAX: Final = 350_000  # of dead letters: below 500 kB in a message, even at worst
TAIL_MAX: Final = 2_000  # messages of one partition that a takeover may have to read again
AGE_MS_MAX: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRule:
    """The greatest distance of a fact that is in no snapshot, in messages and in time.

    Commits are kept as long as a token lives. What is older must be in a snapshot, however
    little happens.
    """

    tail_max: int = TAIL_MAX
    age_ms_max: int = AGE_MS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaved:
    """The first change of a pipeline since its last snapshot: its position, and when it was
    applied.

    A transition is `urgent`: its own offset is committed with the next save.
    """

    position: int
    since_ms: int
    urgent: bool = False

    def due(self, position: int, now_ms: int, rule: SnapshotRule) -> bool:
        """Return True if the change must be in a snapshot now."""
        old = now_ms - self.since_ms >= rule.age_ms_max
        return self.urgent or old or position - self.position >= rule.tail_max


def pack(slot: Slot, history: Sequence[Entry], dead_chunks: tuple[str, ...] = ()) -> str:
    """Return the complete slot as text. A tracker that starts with it must decide as the one that
    wrote it. What makes a slot grow has its limit in `core.hops`.

    A history that does not fit is left out. With thousands of partitions times sinks a slot may
    still be too large for Kafka. Then the tracker tries again and continues meanwhile. Its
    successor reads all commits since the last snapshot.
    """
    packed = _pack(Saved(slot=slot, history=_newest(history), dead_chunks=dead_chunks))
    if len(packed) <= PACKED_CHARACTERS_MAX:
        return packed
    return _pack(Saved(slot=slot, history=(), dead_chunks=dead_chunks))


@dataclass(frozen=True, slots=True)
class DeadChunk:
    """A part of the dead letters of a pipeline, as one snapshot of its own."""

    text: str
    entries: int

    @property
    def checksum(self) -> str:
        return checksum_of(self.text)


def pack_dead(
    entries: Sequence[DeadEntry], known: Sequence[DeadChunk] = ()
) -> tuple[DeadChunk, ...]:
    """Return the chunks of these entries. `known` are the chunks of the same entries when there
    were fewer: of them only the last one changes."""
    chunks = [*known[:-1]]
    at = sum(chunk.entries for chunk in chunks)
    while at < len(entries):
        chunks.append(_chunk(entries, at))
        at += chunks[-1].entries
    return tuple(chunks)


def unpack_dead(text: str) -> tuple[DeadEntry, ...]:
    return slots.dead_list_from_json(_unsqueeze(text))


def checksum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def unpack(snapshot: Snapshot) -> Saved:
    if snapshot.slot_version != slots.SLOT_VERSION:
        raise RuntimeError(
            f"the snapshot of pipeline {snapshot.pipeline_uid} has version {snapshot.slot_version},"
            f" and this tracker reads {slots.SLOT_VERSION}: start the Waybill that wrote it"
        )
    return slots.load_from_json(_unsqueeze(snapshot.slot))


def _chunk(entries: Sequence[DeadEntry], start: int) -> DeadChunk:
    texts: list[str] = []
    room = CHUNK_BYTES_MAX
    for entry in islice(entries, start, None):
        text = slots.dead_to_json(entry)
        room -= len(text.encode())
        if room < 0 and texts:
            break
        texts.append(text)
    return DeadChunk(_squeeze(f"[{','.join(texts)}]"), len(texts))


def _pack(saved: Saved) -> str:
    return _squeeze(slots.save_to_json(saved))


def _squeeze(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _unsqueeze(packed: str) -> bytes:
    return zlib.decompress(base64.b64decode(packed))


def _newest(history: Sequence[Entry]) -> tuple[Entry, ...]:
    kept: list[Entry] = []
    room = HISTORY_CHARACTERS_MAX
    for entry in reversed(history):
        room -= len(entry.progress)
        if room < 0 or len(kept) == HISTORY_MAX:
            break
        kept.append(entry)
    return tuple(reversed(kept))
