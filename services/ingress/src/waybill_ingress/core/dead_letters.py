"""Decides which dead letters can be sent to their topic again, and why others cannot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from waybill_ingress.core.inputs import not_ready
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterId, place_of, split_headers
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import Source

LETTERS_MAX: Final = 1_000  # in one request: its answer has half of the size that Kafka accepts
BYTES_MAX: Final = 32_000_000  # of records in one transaction, and readers wait for its end
ID_CHARACTERS_MAX: Final = 400  # no id is longer
HINTS: Final[Mapping[Slug, str]] = {
    Slug.DEAD_LETTER_NOT_FOUND: "`waybill dlq list` shows the ids of a pipeline's dead letters",
    Slug.DEAD_LETTER_GONE: "a dead-letter topic with a longer retention.ms keeps them longer",
    Slug.SOURCE_RECREATED: "send it as a new record: `waybill dlq show` has its key and its value",
    Slug.SOURCE_NOT_AN_INPUT: "send what it was made of: the outcome of its token names records"
    " of an input. Or send it as a new record of an input: `waybill dlq show` has it",
}
"""In order of precedence, if several letters cannot be sent for several reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDeadLetter:
    """A record of a dead-letter topic, as it is there."""

    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredDeadLetter:
    """A letter below the first offset that its topic still has. `since` is when the oldest record
    there was written, if any.
    """

    since: int | None


Found = Mapping[LetterId, FoundDeadLetter | ExpiredDeadLetter]
"""Letters by their ids, without those that do not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """The record that died, as it was before, and its position then: it is sent to that topic
    again.
    """

    id: str
    topic: str
    topic_id: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    own_headers: Headers

    @property
    def source(self) -> Source:
        return (self.topic_id, self.partition, self.offset)

    @property
    def headers(self) -> Headers:
        return (*self.own_headers, (named.REPLAY_OF, self.id.encode()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """The reason why a dead letter cannot be sent."""

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


def resent_of(record: PipelineRecord, places: Sequence[LetterId], found: Found) -> list[Resent]:
    """Return the records of all letters. Raises a Refusal that names each that cannot be sent
    again.
    """
    read = [_read(record, place, found.get(place)) for place in places]
    _refuse([str(place) for place in places], read)
    return [each for each in read if isinstance(each, Resent)]


def inputs_of(record: PipelineRecord, resent: Iterable[Resent]) -> list[InputDefinition]:
    """Return the inputs that the records go to. Raises Refusal while one of them is being
    set up.
    """
    topics = {each.topic for each in resent}
    inputs = [source for source in record.root_inputs().values() if source.topic in topics]
    for source in inputs:
        if not source.bases:
            reason = f"input {source.name} of {record.name} has no starting offsets yet"
            raise not_ready(Slug.INPUT_NOT_READY, reason)
    return inputs


def refuse_recreated(resent: Sequence[Resent], source: InputDefinition, why: str) -> None:
    """Refuse all records that come from that topic, because it was created again."""
    wrong = _Wrong(problem=Slug.SOURCE_RECREATED, reason=why)
    _refuse(
        [each.id for each in resent],
        [wrong if each.topic == source.topic else None for each in resent],
    )


def _read(
    record: PipelineRecord, place: LetterId, found: FoundDeadLetter | ExpiredDeadLetter | None
) -> Resent | _Wrong:
    if isinstance(found, ExpiredDeadLetter):
        return _expired(place, found)
    letter = None if found is None else split_headers(found.headers)
    if found is None or letter is None or not _is_meant(record, place, letter.facts):
        return _unknown(f"it is no dead letter of pipeline {record.name}")
    topic, topic_id = letter.facts[named.TOPIC], letter.facts[named.TOPIC_ID]
    misplaced = _find_misplaced(record, topic, topic_id)
    if misplaced is not None:
        return misplaced
    return Resent(
        id=str(place),
        topic=topic,
        topic_id=topic_id,
        partition=int(letter.facts[named.PARTITION]),
        offset=place.source,
        key=found.key,
        value=found.value,
        own_headers=letter.own,
    )


def _is_meant(record: PipelineRecord, place: LetterId, told: Mapping[str, str]) -> bool:
    meant = told[named.UID], told[named.OFFSET]
    return meant == (record.pipeline_uid, str(place.source)) and told[named.PARTITION].isdecimal()


def _find_misplaced(record: PipelineRecord, topic: str, topic_id: str) -> _Wrong | None:
    """Return why a record that died in that topic cannot be sent there again; None if it can."""
    read = {source.topic: source for stage in record.stages for source in stage.inputs}
    source = read.get(topic)
    if source is None:
        reason = f"pipeline {record.name} does not read {topic} any more"
        return _Wrong(problem=Slug.SOURCE_NOT_AN_INPUT, reason=reason)
    if not source.root:
        reason = f"it died between stages: in {topic}, which another stage writes"
        return _Wrong(problem=Slug.SOURCE_NOT_AN_INPUT, reason=reason)
    if source.topic_id != topic_id:
        reason = f"{topic} was created again: it had id {topic_id}, it has {source.topic_id}"
        return _Wrong(problem=Slug.SOURCE_RECREATED, reason=reason)
    return None


def _expired(place: LetterId, found: ExpiredDeadLetter) -> _Wrong:
    rest = "nothing" if found.since is None else f"records since {format_moment(found.since)}"
    reason = f"{place.topic}[{place.partition}] does not hold it any more: it has {rest}"
    return _Wrong(problem=Slug.DEAD_LETTER_GONE, reason=reason)


def _unknown(reason: str) -> _Wrong:
    return _Wrong(problem=Slug.DEAD_LETTER_NOT_FOUND, reason=reason)


def _refuse(ids: Sequence[str], read: Sequence[object]) -> None:
    """Raise a Refusal for the most important reason, if one of the letters cannot be sent."""
    wrong = [(index, each) for index, each in enumerate(read) if isinstance(each, _Wrong)]
    if not wrong:
        return
    order = list(HINTS)
    index, first = min(wrong, key=lambda each: order.index(each[1].problem))
    detail = f"dead letter {ids[index][:ID_CHARACTERS_MAX]}: {first.reason}"
    if len(wrong) > 1:
        detail += f"; and {len(wrong) - 1} more, so none was sent"
    rejected = [{"index": at, **asdict(each)} for at, each in wrong]
    raise Refusal(first.problem, detail, hint=HINTS[first.problem], rejected=rejected)
