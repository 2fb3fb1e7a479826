"""Keeps where dead letters were sent again: the newest position of each dead record.

Of all pipelines together the newest 100,000 are kept; older ones are not shown any more.
"""

import threading
from collections import OrderedDict
from typing import Final

from waybill_shared.contract.replays import Replay, Source
from waybill_status.core.outcomes.dead_letters import ReplayedAs
from waybill_status.core.outcomes.views import PipelineKey

RECORDS_MAX: Final = 100_000  # about 40 MB


class KnownReplays:
    """The replays that are known here. Thread-safe: one follower writes, requests read."""

    def __init__(self, records_max: int = RECORDS_MAX) -> None:
        self._lock = threading.Lock()
        self._records_max = records_max
        self._places: OrderedDict[tuple[PipelineKey, Source], ReplayedAs] = OrderedDict()

    def accept(self, replay: Replay) -> None:
        pipeline = (replay.tenant, replay.pipeline_uid)
        with self._lock:
            for record in replay.records:
                key = (pipeline, record.source)
                self._places[key] = ReplayedAs(
                    topic=record.topic, partition=record.new_partition, offset=record.new_offset
                )
                self._places.move_to_end(key)
            while len(self._places) > self._records_max:
                self._places.popitem(last=False)

    def of(self, pipeline: PipelineKey, source: Source) -> ReplayedAs | None:
        """Return the new position of a dead record; None if none is known. `source`: where it
        was."""
        with self._lock:
            return self._places.get((pipeline, source))
