"""Decides how a record of a dead-letter topic is shown: what it was, and where and why it was put
there. Also decides if it belongs to the pipeline at all. Pure."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterHeaders, LetterId, split_headers
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.lacking_sinks import find_lacking
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import DeadReason
from waybill_status.core.outcomes.dead_letters import (
    LetterPlace,
    ReplayedAs,
    Replays,
    nowhere,
)

CHARACTERS_MAX: Final = 1_000  # of a key or value in a list
BYTES_MAX: Final = 4 * CHARACTERS_MAX  # no character has more than four
_TRUNCATED: Final = "key or value is not whole here, or is no UTF-8: ask for this one alone"
_BASE64: Final = "in base64, where it is no UTF-8"
_OBSTACLE: Final = "why it cannot be replayed; null: it can be"
_REPLAYED: Final = "the message by which it is replayed, the last time; null: none that is known"
_LACKING: Final = "the sinks that lack its row, of those that the pipeline has now"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRecord:
    """The record as it is in a dead-letter topic."""

    topic: str
    partition: int
    offset: int
    at: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """The records of a pipeline to show; None: any. `names`: all names of the stage, if it had
    others."""

    reason: str | None = None
    stage: str | None = None
    names: frozenset[str] = frozenset()
    since: int | None = None


ALL: Final = LetterFilter()


def _nothing(_: Mapping[str, str]) -> str | None:
    """Return None: nothing is in the way of a replay."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOwner:
    """The pipeline of some letters: its stages now, why a letter cannot be replayed by what its
    headers say, and by its id where it is replayed.
    """

    uid: str
    stages: Iterable[StageDefinition] = ()
    obstacle: Callable[[Mapping[str, str]], str | None] = _nothing
    replays: Replays = nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    id: str
    topic: str
    partition: int
    offset: int
    at: Moment = field(metadata={"description": "when it went there"})
    stage: str
    sink: str | None = field(metadata={"description": "the only one that lacks it, if one does"})
    reason: str = field(metadata={"description": meanings(DeadReason)})
    rule: str | None
    message: str
    source: LetterPlace = field(metadata={"description": "where it died"})
    not_replayable: str | None = field(metadata={"description": _OBSTACLE})
    replayed_as: ReplayedAs | None = field(metadata={"description": _REPLAYED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSummary(_Letter):
    """A dead letter of a list."""

    key: str | None
    value: str | None
    truncated: bool = field(metadata={"description": _TRUNCATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderText:
    name: str
    value: str | None
    value_base64: str | None = field(metadata={"description": _BASE64})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter(_Letter):
    """A dead letter with all its content."""

    lacking: tuple[str, ...] = field(metadata={"description": _LACKING})
    key: str | None
    key_base64: str | None = field(metadata={"description": _BASE64})
    value: str | None
    value_base64: str | None = field(metadata={"description": _BASE64})
    headers: tuple[HeaderText, ...] = field(metadata={"description": "the record's own"})
    error: str = field(metadata={"description": "the class of what was raised, or the reason"})
    batch: str = field(metadata={"description": "lineage and number"})


class _Facts(TypedDict):
    id: str
    topic: str
    partition: int
    offset: int
    at: int
    stage: str
    sink: str | None
    reason: str
    rule: str | None
    message: str
    source: LetterPlace
    not_replayable: str | None
    replayed_as: ReplayedAs | None


def listed(
    record: DeadRecord, owner: LetterOwner, wanted: LetterFilter
) -> DeadLetterSummary | None:
    """Return the dead letter; None if it is not of that pipeline, or not wanted."""
    found = _read(record, owner.uid, wanted)
    if found is None:
        return None
    key, key_cut = _shorten(record.key)
    value, value_cut = _shorten(record.value)
    facts = _facts(record, found, owner)
    return DeadLetterSummary(**facts, key=key, value=value, truncated=key_cut or value_cut)


def whole(record: DeadRecord, id: LetterId, owner: LetterOwner) -> DeadLetter | None:
    """Return the dead letter; None if it is none of that pipeline, or not the one with that id."""
    found = _read(record, owner.uid, ALL)
    if found is None or _id(record, found) != id:
        return None
    key, key_base64 = _texts(record.key)
    value, value_base64 = _texts(record.value)
    return DeadLetter(
        **_facts(record, found, owner),
        lacking=tuple(each.sink.name for each in find_lacking(owner.stages, found.facts)),
        key=key,
        key_base64=key_base64,
        value=value,
        value_base64=value_base64,
        headers=tuple(_header(name, content) for name, content in found.own),
        error=found.facts[named.ERROR],
        batch=found.facts[named.BATCH],
    )


def _read(record: DeadRecord, uid: str, wanted: LetterFilter) -> LetterHeaders | None:
    found = split_headers(record.headers)
    if found is None or not _places_are_numbers(found):
        return None
    facts = found.facts
    fits = (
        facts[named.UID] == uid
        and wanted.reason in (None, facts[named.REASON])
        and (wanted.stage in (None, facts[named.STAGE]) or facts[named.STAGE] in wanted.names)
        and (wanted.since is None or record.at >= wanted.since)
    )
    return found if fits else None


def _places_are_numbers(found: LetterHeaders) -> bool:
    """Return True if what must be a number is one. Other programs may write such headers, too."""
    facts = found.facts
    numbers = facts[named.PARTITION], facts[named.OFFSET], facts.get(named.GENERATION, "1")
    return all(number.isascii() and number.isdecimal() for number in numbers)


def _id(record: DeadRecord, found: LetterHeaders) -> LetterId:
    return LetterId(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        source=int(found.facts[named.OFFSET]),
    )


def _facts(record: DeadRecord, found: LetterHeaders, owner: LetterOwner) -> _Facts:
    facts = found.facts
    sink = facts.get(named.SINK)
    letter = str(_id(record, found))
    return _Facts(
        id=letter,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        at=record.at,
        stage=facts[named.STAGE],
        sink=None if sink is None else sink.partition("/")[2].partition("@")[0],
        reason=facts[named.REASON],
        rule=facts.get(named.RULE),
        message=facts[named.MESSAGE],
        source=LetterPlace(
            topic=facts[named.TOPIC],
            partition=int(facts[named.PARTITION]),
            offset=int(facts[named.OFFSET]),
        ),
        not_replayable=owner.obstacle(facts),
        replayed_as=owner.replays(letter),
    )


def _shorten(content: bytes | None) -> tuple[str | None, bool]:
    """Return the content as text for people, and whether some of it is cut."""
    if content is None:
        return None, False
    text = content[:BYTES_MAX].decode(errors="replace")[:CHARACTERS_MAX]
    return text, text.encode() != content


def _texts(content: bytes | None) -> tuple[str | None, str | None]:
    """Return the text, or else the content in base64."""
    if content is None:
        return None, None
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(content).decode()


def _header(name: str, content: bytes | None) -> HeaderText:
    value, value_base64 = _texts(content)
    return HeaderText(name=name, value=value, value_base64=value_base64)
