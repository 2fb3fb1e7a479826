"""Shows how far behind each stage is: to Prometheus, and to Kafka's own tools as consumer groups.

A thread of its own: whatever is slow or fails here, facts are applied meanwhile.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import Slot
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process import metrics
from waybill_token_tracker.adapters.groups import ConsumerGroups, Offsets
from waybill_token_tracker.core.standing import (
    SinkStanding,
    Standing,
    behind,
    departed,
    standings,
)

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 1.0
# Somebody may delete a group, and Kafka itself forgets one that nobody writes for a week.
REWRITE_INTERVAL_S: Final = 60.0

Ends = Mapping[str, Mapping[int, int]]
"""By topic id and partition, of the topics that exist and answer."""


class LagWatch:
    """`show` gives it what the tracker knows; it looks at that once a second."""

    def __init__(self, admin: KafkaAdmin, prefix: str) -> None:
        self._admin = admin
        self._groups = ConsumerGroups(admin)
        self._prefix = prefix
        self._slots: tuple[Slot, ...] = ()
        self._written: dict[str, Offsets] = {}
        self._deleted: set[str] = set()
        self._rewrite_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def __enter__(self) -> "LagWatch":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def show(self, slots: tuple[Slot, ...]) -> None:
        self._slots = slots

    def look(self) -> None:
        """Once: ask Kafka for the ends, and show what that makes."""
        slots = self._slots
        found = standings(slots)
        metrics.show("waybill_last_commit_timestamp_seconds", _committed(found))
        metrics.show("waybill_set_aside_ranges", _set_aside(found))
        ends = self._ends(found)
        metrics.show("waybill_lag_offsets", _lags(found, ends))
        groups = {self._group(s.pipeline, s.stage): _offsets(s, ends) for s in found}
        self._write(groups)
        self._delete({self._group(*names) for names in departed(slots)} - groups.keys())

    def _run(self) -> None:
        while not self._stop.wait(LOOK_INTERVAL_S):
            try:
                self.look()
            except Retryable as error:
                logger.warning("lag cannot be seen", extra={"reason": str(error)})
                self._show_nothing()
            except Exception:  # the thread's boundary: facts are applied all the same
                logger.exception("lag cannot be seen")
                self._show_nothing()

    def _show_nothing(self) -> None:
        """An old number would look like a true one."""
        metrics.show("waybill_lag_offsets", {})
        metrics.count("waybill_lag_failures_total")

    def _ends(self, found: Iterable[Standing]) -> Ends:
        topics = self._admin.identify(name for standing in found for name in standing.topics)
        if not topics:
            return {}
        ends = self._admin.ends_of(topics.values())
        return {topics[name].topic_id: of_topic for name, of_topic in ends.items()}

    def _write(self, groups: dict[str, Offsets]) -> None:
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
        gone = groups - self._deleted
        failed = self._groups.delete(gone)
        self._deleted |= gone - failed.keys()
        _report("groups are not deleted", failed)

    def _group(self, pipeline: str, stage: str) -> str:
        return f"{self._prefix}.{pipeline}.{stage}"


def _offsets(standing: Standing, ends: Ends) -> Offsets:
    """Only of topics that are still the ones that the stage reads."""
    return {
        (topic, partition): offset
        for topic, topic_id in standing.topics.items()
        for partition in ends.get(topic_id, {})
        for offset in [standing.offset(topic_id, partition)]
        if offset is not None
    }


def _each(
    found: Iterable[Standing],
) -> Iterable[tuple[tuple[str, str, str], Standing, SinkStanding]]:
    for standing in found:
        for sink in standing.sinks:
            yield (standing.pipeline, standing.stage, sink.name), standing, sink


def _lags(found: Iterable[Standing], ends: Ends) -> dict[tuple[str, ...], float]:
    """Of those whose topics all answer: part of a lag would look better than it is."""
    return {
        labels: sum(behind(sink.position, topic_id, ends[topic_id]) for topic_id in topic_ids)
        for labels, standing, sink in _each(found)
        for topic_ids in [standing.topics.values()]
        if ends.keys() >= set(topic_ids)
    }


def _committed(found: Iterable[Standing]) -> dict[tuple[str, ...], float]:
    return {
        labels: sink.state.committed_at / 1000
        for labels, _, sink in _each(found)
        if sink.state.committed_at
    }


def _set_aside(found: Iterable[Standing]) -> dict[tuple[str, ...], float]:
    return {
        (*labels, reason): len(spans)
        for labels, _, sink in _each(found)
        for reason, spans in sink.state.set_aside.items()
    }


def _report(what: str, failed: Mapping[str, str]) -> None:
    """One line, however many: it is mostly one cause, and all are tried again."""
    if failed:
        metrics.count("waybill_group_failures_total", len(failed))
        group, reason = next(iter(failed.items()))
        logger.warning(what, extra={"groups": len(failed), "group": group, "reason": reason})
