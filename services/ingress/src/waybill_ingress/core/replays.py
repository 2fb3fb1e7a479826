"""Decides which dead letters are replayed now, and which were before.

A letter is replayed once. A record that two sinks refused has two letters, and each goes to its own
sink; one that dies again has another letter. So what a person edits afterwards is refused, unless
the letter is to be replayed once more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import (
    EditedRecord,
    LetterReplay,
    Replay,
    ReplayedLetter,
    ReplayPosition,
)
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Part, pipeline_id
from waybill_shared.contract.vectors import record_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The records to replay, and those that were replayed: `fresh` is to be replayed, `kept` was
    before. `token` is the earlier token for exactly these."""

    fresh: tuple[LetterReplay, ...]
    kept: tuple[ReplayedLetter, ...]
    token: str | None = None


def plan(
    letters: Sequence[LetterReplay], answers: Iterable[Replay], *, again: bool, now_ms: int
) -> Plan:
    """Return the plan. `answers` are all answers for the pipeline so far, in their order. Raise
    Refusal if an edited record would not be processed, because its letter was replayed before.
    """
    answers = list(answers)
    known = {} if again else newest(answers, now_ms)
    before = {each.letter: known.get((each.letter_topic_id, each.letter)) for each in letters}
    for each in letters:
        if each.edited is not None and (replayed := before[each.letter]) is not None:
            _refuse_another(each.letter, each.edited, replayed)
    fresh = tuple(each for each in letters if before[each.letter] is None)
    kept = tuple(each for each in before.values() if each is not None)
    if fresh:
        return Plan(fresh=fresh, kept=kept)
    same = [answer.token for answer in answers if {*answer.letters} == {*kept}]
    return Plan(fresh=(), kept=kept, token=same[-1] if same else None)


def answer_to(request_id: str, answers: Iterable[Replay]) -> Replay | None:
    """Return the answer to that request; None if there is none. A request has only one answer."""
    return next((answer for answer in answers if answer.request_id == request_id), None)


def newest(answers: Iterable[Replay], now_ms: int) -> dict[tuple[str, LetterId], ReplayedLetter]:
    """Return the last message of each letter. A dead-letter topic that was created again has others
    of the same ids.

    Replays that are older than the life of a token are left out. The topic deletes them later, too.
    """
    found = {(e.letter_topic_id, e.letter): e for answer in answers for e in answer.letters}
    return {key: each for key, each in found.items() if now_ms - each.at < TOKEN_LIFE_MS}


def replayed_letter(
    asked: LetterReplay, position: ReplayPosition, *, generation: int
) -> ReplayedLetter:
    """Return the letter with the position of its message."""
    return ReplayedLetter(
        letter=asked.letter,
        letter_topic_id=asked.letter_topic_id,
        sinks=asked.sinks,
        position=position,
        generation=generation,
        at=asked.at,
        edited=None if asked.edited is None else asked.edited.digest,
    )


def parts_of(record: PipelineRecord, letters: Iterable[ReplayedLetter]) -> list[Part]:
    """Return the parts of the token: one for the letters into the same sinks that were replayed in
    the same generation.
    """
    found: dict[tuple[int, tuple[str, ...]], list[tuple[str, int, int]]] = {}
    for each in letters:
        at = each.position
        place = (at.topic_id, at.partition, at.offset)
        found.setdefault((each.generation, each.sinks), []).append(place)
    return [
        Part(
            pipeline_id=pipeline_id(record.tenant, record.pipeline_uid),
            generation=generation,
            spans=record_spans(places),
            into=sinks,
        )
        for (generation, sinks), places in sorted(found.items())
    ]


def _refuse_another(letter: LetterId, edited: EditedRecord, before: ReplayedLetter) -> None:
    """Raise Refusal if the letter was replayed with another record than this one."""
    if before.edited != edited.digest:
        was = "as it was" if before.edited is None else "with another edit"
        detail = f"dead letter {letter} was replayed before, {was}; nothing was replayed"
        hint = "with `again: true` the edited record is processed as well"
        raise Refusal(Slug.REPLAYED_BEFORE, detail, hint=hint)
