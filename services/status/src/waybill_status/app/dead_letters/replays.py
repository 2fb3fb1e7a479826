"""Keeps where dead letters are replayed: the newest message of each.

Of all pipelines together the newest 100,000 are kept; older ones are not shown any more.
"""

import threading
from collections import OrderedDict
from typing import Final

from waybill_shared.contract.replays import LetterReplay, ReplayMessage
from waybill_status.core.outcomes.dead_letters import ReplayedAs
from waybill_status.core.outcomes.replays import REPLAYS
from waybill_status.core.outcomes.views import PipelineKey

RECORDS_MAX: Final = 100_000  # about 40 MB


class KnownReplays:
    """The replays that are known here. Thread-safe: one follower writes, requests read."""

    def __init__(self, records_max: int = RECORDS_MAX) -> None:
        self._lock = threading.Lock()
        self._records_max = records_max
        self._places: OrderedDict[tuple[PipelineKey, str], ReplayedAs] = OrderedDict()

    def accept(self, message: ReplayMessage) -> None:
        replay = message.body
        if isinstance(replay, LetterReplay):  # the answer to its request has its position
            return
        pipeline = (replay.tenant, replay.pipeline_uid)
        with self._lock:
            for each in replay.letters:
                key, at = (pipeline, str(each.letter)), each.position
                self._places[key] = ReplayedAs(
                    topic=REPLAYS,
                    partition=at.partition,
                    offset=at.offset,
                    edited=each.edited is not None,
                )
                self._places.move_to_end(key)
            while len(self._places) > self._records_max:
                self._places.popitem(last=False)

    def of(self, pipeline: PipelineKey, letter: str) -> ReplayedAs | None:
        """Return the message by which a letter is replayed; None if none is known. `letter`: its
        id."""
        with self._lock:
            return self._places.get((pipeline, letter))
