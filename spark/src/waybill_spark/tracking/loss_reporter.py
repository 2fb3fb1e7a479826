"""Looks at the topics of a stage, and sets aside in its sinks what can never be processed."""

import logging
from collections.abc import Mapping, Sequence

from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.fencing import StageInput
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.losses import (
    Looks,
    TopicLook,
    find_losses,
    find_removed_again,
    find_stop,
)
from waybill_spark.tracking.ports import Source
from waybill_spark.tracking.stopping import StageStopped, collect, raise_first

logger = logging.getLogger(__name__)


class LossReporter:
    """Callers see to it that one thread at a time is in here. `losses` decides what is lost."""

    def __init__(
        self,
        stage: str,
        *,
        inputs: tuple[StageInput, ...],
        source: Source,
        ledgers: Sequence[Ledger],
    ) -> None:
        self._stage = stage
        self._inputs = inputs
        self._source = source
        self._ledgers = ledgers

    def check_topics(self) -> None:
        """Check after rows are read: a topic re-created in between gave rows of another topic."""
        wanted = self._topic_ids()
        if self._source.ids(wanted) != wanted:
            raise_first(self.set_aside())
            raise Retryable(f"brokers do not agree on the topics of stage {self._stage}")

    def set_aside(self) -> list[StageStopped]:
        """Find what can never be processed, set it aside in each sink, and return why the stage
        must stop.
        """
        looks = self._looks()
        stops: list[StageStopped] = []
        for ledger in self._fenceless_first():
            found = find_losses(self._inputs, looks, ledger.frontier())
            removed = find_removed_again(self._inputs, looks, ledger.position(), ledger.frontier())
            stop = find_stop(self._inputs, looks, found)
            if stop is not None:
                stops.append(stop)
            if found or removed:
                logger.warning(
                    "records will never be processed" if found else "records are not read again",
                    extra={"stage": self._stage, "sink": ledger.sink.name, "set_aside": str(found)},
                )
                with collect(stops):
                    ledger.set_aside(found, passed=removed)
        return stops

    def report_topics(self) -> list[StageStopped]:
        """Report the loss of a sink's topic that was created again, before all else of that sink.
        Return why that could not be reported.
        """
        stops: list[StageStopped] = []
        if any(ledger.lost_its_topic for ledger in self._ledgers):
            for ledger in self._fenceless_first():
                if ledger.fence is None or ledger.lost_its_topic:
                    with collect(stops):
                        ledger.set_topic_aside()
        return stops

    def _fenceless_first(self) -> list[Ledger]:
        """Sort the ledgers: a sink moves past its first fence only after all have theirs."""
        return sorted(self._ledgers, key=lambda each: each.fence is not None)

    def _looks(self) -> Looks:
        wanted = self._topic_ids()
        ids = self._source.ids(wanted)
        for source in self._inputs:
            if ids.get(source.topic) in source.retired:
                message = f"topic {source.topic}: a broker reports an id that it had before"
                raise Retryable(message)
        return {
            topic: TopicLook(
                topic_id=topic_id,
                starts=self._starts(topic, topic_id) if topic_id == wanted[topic] else {},
            )
            for topic, topic_id in ids.items()
        }

    def _starts(self, topic: str, topic_id: str) -> Mapping[int, int]:
        """Return the first offsets: what is below them, and not in every sink, is lost."""
        positions = [ledger.position() for ledger in self._ledgers]
        partitions = {partition for each in positions for of, partition in each if of == topic_id}
        least = {p: min(each.get((topic_id, p), 0) for each in positions) for p in partitions}
        return self._source.starts(topic, least)

    def _topic_ids(self) -> dict[str, str]:
        return {source.topic: source.topic_id for source in self._inputs}
