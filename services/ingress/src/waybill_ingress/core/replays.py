"""Decides which dead letters are sent to their topics again, and which were sent before.

A replay is identified by the record that died, not by its letter. A record that two sinks refused
has two letters, and all sinks get it again when one of them is sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from waybill_ingress.core.dead_letters import Resent
from waybill_ingress.core.token_coverage import part_of
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.replays import Replay, ReplayedRecord, Source
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import record_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do: `fresh` is to be sent, `kept` was sent before. `token` is the earlier token for
    exactly these.
    """

    fresh: tuple[Resent, ...]
    kept: tuple[ReplayedRecord, ...]
    token: str | None = None


def plan(resent: Sequence[Resent], answers: Iterable[Replay], *, again: bool, now_ms: int) -> Plan:
    """Return the plan. `answers` are all answers for the pipeline so far, in their order."""
    answers = list(answers)
    known = {} if again else newest(answers, now_ms)
    wanted = {each.source: each for each in resent}
    fresh = tuple(each for source, each in wanted.items() if source not in known)
    kept = tuple(known[source] for source in wanted if source in known)
    if fresh:
        return Plan(fresh=fresh, kept=kept)
    same = [answer.token for answer in answers if {*answer.records} == {*kept}]
    return Plan(fresh=(), kept=kept, token=same[-1] if same else None)


def answer_to(request_id: str, answers: Iterable[Replay]) -> Replay | None:
    """Return the answer to that request; None if there is none. A request has only one answer."""
    return next((answer for answer in answers if answer.request_id == request_id), None)


def newest(answers: Iterable[Replay], now_ms: int) -> dict[Source, ReplayedRecord]:
    """Return where each record is since it was sent the last time.

    Replays that are older than the life of a token are left out. The topic deletes them later, too.
    """
    found = {record.source: record for answer in answers for record in answer.records}
    return {key: record for key, record in found.items() if now_ms - record.at < TOKEN_LIFE_MS}


def record_of(
    resent: Resent, place: tuple[int, int], *, generation: int, now_ms: int
) -> ReplayedRecord:
    """Return the record of a replay. `place` is its new partition and offset."""
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
    """Return the parts of the token, one for each generation in which records were sent.

    The generation says which sinks the token waits for.
    """
    positions: dict[int, list[tuple[str, int, int]]] = {}
    for each in records:
        at = (each.topic_id, each.new_partition, each.new_offset)
        positions.setdefault(each.generation, []).append(at)
    return [
        replace(part_of(record, record_spans(found)), generation=generation)
        for generation, found in sorted(positions.items())
    ]
