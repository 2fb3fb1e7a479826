"""Shows how far each stage lags: to Prometheus, and to Kafka's own tools as consumer groups.

Nothing waits for it: a thread of its own calls `look`, and facts are applied meanwhile.
"""

import logging
import time
from collections.abc import Mapping
from typing import Final

from waybill_shared.contract.slots import Slot
from waybill_token_tracker.app.measuring import count_group_failures, show_lags, show_sinks
from waybill_token_tracker.app.ports import Ends, Groups, OffsetsByName, Topics
from waybill_token_tracker.core.lag_positions import LagPosition, deleted_stages, positions

logger = logging.getLogger(__name__)

# Somebody may delete a group, and Kafka itself deletes one that nobody writes for a week.
REWRITE_INTERVAL_S: Final = 60.0


class LagWatch:
    """The lag of all stages. `show` gives it the slots of the tracker; `look` measures with the
    newest."""

    def __init__(self, topics: Topics, groups: Groups, prefix: str) -> None:
        self._topics = topics
        self._groups = groups
        self._prefix = prefix
        self._slots: tuple[Slot, ...] = ()
        self._written: dict[str, OffsetsByName] = {}
        self._deleted: set[str] = set()
        self._rewrite_at = 0.0

    def show(self, slots: tuple[Slot, ...]) -> None:
        self._slots = slots

    def look(self) -> None:
        """Measure once: ask Kafka for the ends of the topics, show the lag, and write the
        groups."""
        slots = self._slots
        found = positions(slots)
        show_sinks(found)
        ends = self._topics.ends(name for stage in found for name in stage.topics)
        show_lags(found, ends)
        groups = {self._group(s.pipeline, s.stage): _offsets(s, ends) for s in found}
        self._write(groups)
        self._delete({self._group(*names) for names in deleted_stages(slots)} - groups.keys())

    def _write(self, groups: dict[str, OffsetsByName]) -> None:
        now = time.monotonic()
        if now >= self._rewrite_at:
            self._rewrite_at = now + REWRITE_INTERVAL_S
            self._written = {}
        changed = {
            group: offsets
            for group, offsets in groups.items()
            if offsets and offsets != self._written.get(group)
        }
        failed = self._groups.write(changed)
        self._written = {g: o for g, o in (self._written | changed).items() if g in groups}
        for group in failed:
            del self._written[group]
        self._deleted -= groups.keys()
        _report("groups are not written", failed)

    def _delete(self, groups: set[str]) -> None:
        deleted = groups - self._deleted
        failed = self._groups.delete(deleted)
        self._deleted |= deleted - failed.keys()
        _report("groups are not deleted", failed)

    def _group(self, pipeline: str, stage: str) -> str:
        return f"{self._prefix}.{pipeline}.{stage}"


def _offsets(stage: LagPosition, ends: Ends) -> OffsetsByName:
    """Return the offsets for topics that still have the id that the stage reads."""
    return {
        (topic, partition): offset
        for topic, topic_id in stage.topics.items()
        for partition in ends.get(topic_id, {})
        for offset in [stage.offset(topic_id, partition)]
        if offset is not None
    }


def _report(what: str, failed: Mapping[str, str]) -> None:
    """Log one line, however many groups failed: mostly it is one cause, and all are tried again."""
    if failed:
        count_group_failures(len(failed))
        group, reason = next(iter(failed.items()))
        logger.warning(what, extra={"groups": len(failed), "group": group, "reason": reason})
