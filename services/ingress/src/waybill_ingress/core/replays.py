"""Decides which dead letters are sent to their topics again, and which stand there already.

What was sent is known by the record that died, not by its letter: a record that two sinks refused
has two letters, and all sinks get it again when one of them is sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from waybill_ingress.core.births import part_of
from waybill_ingress.core.letters import Resent
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.replays import Replay, ReplayedRecord, Source
from waybill_shared.contract.tokens import LIFE_MS, Part
from waybill_shared.contract.vectors import record_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`fresh` is to be sent; `kept` was. `token`: what was answered for exactly these, before."""

    fresh: tuple[Resent, ...]
    kept: tuple[ReplayedRecord, ...]
    token: str | None = None


def plan(resent: Sequence[Resent], told: Iterable[Replay], *, again: bool, now_ms: int) -> Plan:
    """`told` is all that was answered for the pipeline so far, in its order."""
    answers = list(told)
    known = {} if again else newest(answers, now_ms)
    wanted = {each.source: each for each in resent}
    fresh = tuple(each for source, each in wanted.items() if source not in known)
    kept = tuple(known[source] for source in wanted if source in known)
    if fresh:
        return Plan(fresh=fresh, kept=kept)
    same = [answer.token for answer in answers if {*answer.records} == {*kept}]
    return Plan(fresh=(), kept=kept, token=same[-1] if same else None)


def answer_to(request_id: str, told: Iterable[Replay]) -> Replay | None:
    """A request has one answer; it may be sent again with the id that it had."""
    return next((answer for answer in told if answer.request_id == request_id), None)


def newest(told: Iterable[Replay], now_ms: int) -> dict[Source, ReplayedRecord]:
    """Where each record stands since it was sent the last time. What is older than any token is
    forgotten; so it is by the topic, some time."""
    found = {record.source: record for answer in told for record in answer.records}
    return {key: record for key, record in found.items() if now_ms - record.at < LIFE_MS}


def replayed(
    resent: Resent, place: tuple[int, int], *, generation: int, now_ms: int
) -> ReplayedRecord:
    """`place`: partition and offset at which it stands now."""
    return ReplayedRecord(
        topic=resent.topic,
        topic_id=resent.topic_id,
        partition=resent.partition,
        offset=resent.offset,
        new_partition=place[0],
        new_offset=place[1],
        generation=generation,
        at=now_ms,
    )


def parts_of(record: PipelineRecord, records: Sequence[ReplayedRecord]) -> list[Part]:
    """Each is of the generation in which it was sent: that says which sinks it awaits."""
    positions: dict[int, list[tuple[str, int, int]]] = {}
    for each in records:
        at = (each.topic_id, each.new_partition, each.new_offset)
        positions.setdefault(each.generation, []).append(at)
    return [
        replace(part_of(record, record_spans(found)), generation=generation)
        for generation, found in sorted(positions.items())
    ]
