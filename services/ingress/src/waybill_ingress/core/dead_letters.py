"""Decides which dead letters can be replayed, by which messages, and why others cannot. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterId, place_of, split_headers
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lacking_sinks import (
    describe_gone,
    describe_replaced,
    find_harm,
    find_lacking,
)
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.slots import stage_key

LETTERS_MAX: Final = 1_000  # in one request: its answer has half of the size that Kafka accepts
BYTES_MAX: Final = 32_000_000  # of their records: a stage takes so many at once
ID_CHARACTERS_MAX: Final = 400  # no id is longer
HINTS: Final[Mapping[Slug, str]] = {
    Slug.DEAD_LETTER_NOT_FOUND: "`waybill dlq list` shows the ids of a pipeline's dead letters",
    Slug.DEAD_LETTER_GONE: "a dead-letter topic with a longer retention.ms keeps them longer",
    Slug.SINKS_GONE: "send it as a new record: `waybill dlq show` has its key and its value",
    Slug.REPLAY_REPLACES: "send it as a new record with all others of its batch",
}
"""In order of precedence, if several letters cannot be replayed for several reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDeadLetter:
    """A record of a dead-letter topic, as it is there. `topic_id`: of that topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    topic_id: str = ""

    @property
    def size(self) -> int:
        """The number of bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredDeadLetter:
    """A letter below the first offset that its topic still has. `since` is when the oldest record
    there was written, if any.
    """

    since: int | None


Found = Mapping[LetterId, FoundDeadLetter | ExpiredDeadLetter]
"""Letters by their ids, without those that do not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """The reason why a dead letter cannot be replayed."""

    problem: Slug
    reason: str


def read_ids(ids: Sequence[str]) -> list[LetterId]:
    if len(ids) > LETTERS_MAX:
        raise too_many(f"{len(ids)} ids in one request, {LETTERS_MAX} is the most")
    wanted = [place_of(text) or _unknown("it is no id") for text in ids]
    _refuse(ids, wanted)
    return [place for place in wanted if isinstance(place, LetterId)]


def too_many(detail: str) -> Refusal:
    hint = "replay them in parts"
    return Refusal(
        Slug.TOO_MANY_DEAD_LETTERS,
        detail,
        hint=hint,
        letters_max=LETTERS_MAX,
        bytes_max=BYTES_MAX,
    )


def letters_of(
    record: PipelineRecord, places: Sequence[LetterId], found: Found, *, now_ms: int
) -> list[LetterReplay]:
    """Return the message for each letter, once. Raises a Refusal that names each that cannot be
    replayed. Those into the same sinks follow one another, because a stage takes them together.
    """
    read = [_read(record, place, found.get(place), now_ms) for place in places]
    letters = {each.letter: each for each in read if isinstance(each, LetterReplay)}
    harm = {sinks: _find_replaced(record, sinks) for sinks in {e.sinks for e in letters.values()}}
    checked = [(isinstance(e, LetterReplay) and harm[e.sinks]) or e for e in read]
    _refuse([str(place) for place in places], checked)
    return sorted(letters.values(), key=lambda each: (each.stage, each.sinks))


def find_aged(record: PipelineRecord, letters: Iterable[LetterReplay]) -> tuple[str, ...]:
    """Return the names of sinks that may get an old row in place of a newer one."""
    into = {key for each in letters for key in each.sinks}
    return find_harm(record.manifest.model, record.stages, into).aged


def _read(
    record: PipelineRecord,
    place: LetterId,
    found: FoundDeadLetter | ExpiredDeadLetter | None,
    now_ms: int,
) -> LetterReplay | _Wrong:
    if isinstance(found, ExpiredDeadLetter):
        return _expired(place, found)
    letter = None if found is None else split_headers(found.headers)
    if found is None or letter is None or not _is_meant(record, place, letter.facts):
        return _unknown(f"it is no dead letter of pipeline {record.name}")
    said = letter.facts
    lacking = find_lacking(record.stages, said)
    if not lacking:
        return _Wrong(problem=Slug.SINKS_GONE, reason=describe_gone(record.name, said))
    return LetterReplay(
        tenant=record.tenant,
        pipeline_uid=record.pipeline_uid,
        at=now_ms,
        stage=stage_key(lacking[0].stage),
        sinks=tuple(sorted(each.key for each in lacking)),
        letter=place,
        letter_topic_id=found.topic_id,
        topic=said[named.TOPIC],
        topic_id=said[named.TOPIC_ID],
        partition=int(said[named.PARTITION]),
        size=found.size,
    )


def _is_meant(record: PipelineRecord, place: LetterId, said: Mapping[str, str]) -> bool:
    numbers = [said[named.PARTITION], said.get(named.GENERATION, "1")]
    mine = (said[named.UID], said[named.OFFSET]) == (record.pipeline_uid, str(place.source))
    return mine and all(number.isdecimal() for number in numbers)


def _find_replaced(record: PipelineRecord, sinks: Iterable[str]) -> _Wrong | None:
    """Return why a letter for these sinks would become all that one contains, if it would."""
    replaced = find_harm(record.manifest.model, record.stages, sinks).replaced
    if not replaced:
        return None
    return _Wrong(problem=Slug.REPLAY_REPLACES, reason=describe_replaced(replaced))


def _expired(place: LetterId, found: ExpiredDeadLetter) -> _Wrong:
    rest = "nothing" if found.since is None else f"records since {format_moment(found.since)}"
    reason = f"{place.topic}[{place.partition}] does not hold it any more: it has {rest}"
    return _Wrong(problem=Slug.DEAD_LETTER_GONE, reason=reason)


def _unknown(reason: str) -> _Wrong:
    return _Wrong(problem=Slug.DEAD_LETTER_NOT_FOUND, reason=reason)


def _refuse(ids: Sequence[str], read: Sequence[object]) -> None:
    """Raise a Refusal for the most important reason, if one of the letters cannot be replayed."""
    wrong = [(index, each) for index, each in enumerate(read) if isinstance(each, _Wrong)]
    if not wrong:
        return
    order = list(HINTS)
    index, first = min(wrong, key=lambda each: order.index(each[1].problem))
    detail = f"dead letter {ids[index][:ID_CHARACTERS_MAX]}: {first.reason}"
    if len(wrong) > 1:
        detail += f"; and {len(wrong) - 1} more, so none was replayed"
    rejected = [{"index": at, **asdict(each)} for at, each in wrong]
    raise Refusal(first.problem, detail, hint=HINTS[first.problem], rejected=rejected)
