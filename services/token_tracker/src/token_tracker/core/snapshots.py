"""Decides what a snapshot keeps of a pipeline: its slot, and as much of its history as has room."""

from collections.abc import Sequence
from typing import Final

from shared.slots import Progress, Saved, Slot, progress_to_json, saved_to_json

HISTORY_MAX: Final = 64  # per pipeline; what a rebuilt slot can still tell after a restart
HISTORY_CHARACTERS_MAX: Final = 200_000  # a message of 1 MB has room for the slot, too


def snapshot_text(slot: Slot, history: Sequence[Progress]) -> str:
    return saved_to_json(Saved(slot=slot, history=_newest(history)))


def _newest(history: Sequence[Progress]) -> tuple[Progress, ...]:
    kept: list[Progress] = []
    room = HISTORY_CHARACTERS_MAX
    for progress in reversed(history):
        room -= len(progress_to_json(progress))
        if room < 0 or len(kept) == HISTORY_MAX:
            break
        kept.append(progress)
    return tuple(reversed(kept))
