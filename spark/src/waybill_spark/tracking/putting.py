"""Writes dead letters that a person asks for, before a batch can read their records.

Some records nobody else can find: they end the driver, or their batch never ends. The record goes
the way of one that a stage could not process. It is read as it is in its topic, and written to the
journal with the fact about it. From then on no batch reads it, whatever its range is: also one that
comes again, and one that is far ahead.

It is written once. A driver that fails after it finds it in the journal, or, when all sinks have
passed it, among the facts. A sink that has the record already keeps it; the letter names the others
then. Where no sink lacks the record, there is nothing to do, and the answer says so.

A record may also be a dead letter that is to be replayed: its position is that of its message in
`waybill.replays`. It dies there, and only for the sinks that the message names.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Protocol

from waybill_shared.contract.batches import planned
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Range
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.vectors import meet
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.batch import NO_BATCH, Batch
from waybill_spark.tracking.dead_letters.positions import positions_in
from waybill_spark.tracking.dead_letters.records import (
    DeadCause,
    DeadLetterRecord,
    RawRecord,
    ReplayedAt,
)
from waybill_spark.tracking.dead_letters.triage import Triage
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.ports import Source
from waybill_spark.tracking.rewinding import is_set_aside

logger = logging.getLogger(__name__)


class ReplayRequests(Protocol):
    """Those of one pipeline in `waybill.replays`."""

    topic: str

    def find(self, topic_id: str, partition: int, offset: int) -> LetterReplay | None:
        """Return what a message asks for; None if there is no such one. Raises Retryable."""


class LetterRecords(Protocol):
    def find(self, letters: Sequence[LetterReplay]) -> Sequence[RawRecord | None]:
        """Return the record of each letter; None if it is not there. Raises Retryable."""


class ReplayedLetters(Protocol):
    """Letters that are to be replayed, and their messages."""

    @property
    def messages(self) -> ReplayRequests: ...

    @property
    def letters(self) -> LetterRecords: ...


def put_dead_letters(
    stage: str,
    ledgers: Sequence[Ledger],
    triage: Triage,
    source: Source,
    asked: Iterable[DeadLetterRequest],
    *,
    replayed: ReplayedLetters | None,
) -> dict[str, Problem | None]:
    """Write the letters that are asked for. Return by the id of its command why one was not; None
    if it is there. Call it when the fences are read and rewinds are done, and before any batch.
    """
    putting = _Putting(stage, ledgers, triage, source)

    def put(asked: DeadLetterRequest) -> Problem | None:
        if replayed is not None and replayed.messages.topic == asked.topic:
            return putting.put_replay(asked, replayed)
        return putting.put(asked)

    return {each.command: put(each) for each in asked}


class _Putting:
    def __init__(
        self, stage: str, ledgers: Sequence[Ledger], triage: Triage, source: Source
    ) -> None:
        self._stage = stage
        self._ledgers = ledgers
        self._triage = triage
        self._source = source

    def put(self, asked: DeadLetterRequest) -> Problem | None:
        """Write the letter if it is not there yet. Return why that is not possible."""
        lacking = [each for each in self._ledgers if _lacks(each, asked)]
        if not lacking:
            return None if self._has_died(asked) else _explain_processed(asked, self._stage)
        record = self._read(asked)
        if record is None:
            message = f"{asked}: the topic has no such record any more"
            return Problem(message=message, hint="there is nothing that a stage could read there")
        self._write(record, asked, lacking)
        return None

    def put_replay(self, asked: DeadLetterRequest, replayed: ReplayedLetters) -> Problem | None:
        """Do the same for a letter that is to be replayed."""
        place = (asked.topic_id, asked.partition)
        message = replayed.messages.find(*place, asked.offset)
        if message is None:
            said = f"{asked}: there is no request of this pipeline to replay a dead letter"
            return Problem(message=said, hint="`waybill dlq show` has it in `replayed_as`")
        named = [each for each in self._ledgers if each.key in message.sinks]
        lacking = [each for each in named if each.replayed.get(place, 0) <= asked.offset]
        if not named:
            said = f"{asked}: it names no sink of stage {self._stage}"
            return Problem(message=said, hint=f"it names {', '.join(message.sinks)}")
        if not lacking:
            return None if self._has_died(asked) else _explain_processed(asked, self._stage)
        (record,) = replayed.letters.find([message])
        if record is None:
            said = f"{asked}: its dead letter is gone, so the replay will be set aside"
            return Problem(message=said, hint="there is nothing to do")
        self._write(_at_message(record, asked, message), asked, lacking)
        return None

    def _read(self, asked: DeadLetterRequest) -> RawRecord | None:
        """Return the record; None if it is gone, or the topic is another one of that name."""
        wanted = {asked.topic: asked.topic_id}
        found = self._source.raw({(asked.topic, asked.partition): frozenset([asked.offset])})
        return found[0] if found and self._source.ids(wanted) == wanted else None

    def _write(self, record: RawRecord, asked: DeadLetterRequest, into: Sequence[Ledger]) -> None:
        for ledger in into:
            ledger.move_claim()
        cause = DeadCause(reason=DeadReason.PUT_BY_OPERATOR, message=asked.message)
        keys = [ledger.key for ledger in into]
        self._triage.record_dead(
            (DeadLetterRecord(record=record, cause=cause),),
            Batch(report=planned(NO_BATCH, "", 0), runs=()),
            reduce(meet, [ledger.end_of_all() for ledger in self._ledgers]),
            keys if len(into) < len(self._ledgers) else (),
            into=keys,
        )
        where = {"stage": self._stage, "record": str(asked), "reason": asked.message}
        logger.warning("record is in its dead-letter topic", extra=where)

    def _has_died(self, asked: DeadLetterRequest) -> bool:
        """Return True if the stage has reported this record as dead before, for any sink."""
        if not self._triage.sequence:
            return False
        place = (asked.topic_id, asked.partition)
        past = self._triage.journal.past({place: asked.offset})
        known = {position[:3] for each in past for position in positions_in(each)}
        return (*place, asked.offset) in known


def _at_message(record: RawRecord, at: DeadLetterRequest, message: LetterReplay) -> RawRecord:
    """Return the record of a letter as one that dies in its replay."""
    replayed = ReplayedAt(
        topic=at.topic,
        topic_id=at.topic_id,
        partition=at.partition,
        offset=at.offset,
        source_id=message.topic_id,
    )
    return replace(record, replayed=replayed)


def _lacks(ledger: Ledger, asked: DeadLetterRequest) -> bool:
    """Return True if the sink is still to get the record."""
    place = (asked.topic_id, asked.partition)
    if ledger.position().get(place, 0) > asked.offset:
        return False
    record = Range(
        topic=asked.topic,
        topic_id=asked.topic_id,
        partition=asked.partition,
        start=asked.offset,
        end=asked.offset + 1,
    )
    return not is_set_aside((record,), ledger.fence)


def _explain_processed(asked: DeadLetterRequest, stage: str) -> Problem:
    return Problem(
        message=f"{asked}: stage {stage} has processed it already, so its token is final",
        hint="only a record that is still to be read can be put into a dead-letter topic",
    )
