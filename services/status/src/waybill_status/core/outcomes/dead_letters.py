"""Decides which dead letters of a token an answer shows: which to look up, which are its own, and
how many records that are at most. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from waybill_shared.contract import vectors
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.slots import DeadCount, DeadEntry, DeadSource
from waybill_shared.contract.vectors import Span, TopicPartition, Vector
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import DeadReason

ENTRIES_MAX: Final = 1_000  # in one answer
READ_MAX: Final = 10_000  # of one token; the tracker keeps about as many of a pipeline
RUNS_MAX: Final = 100  # of a partition, looked up one by one; if more, also all between them

_ONLY_SINK: Final = "the only sink that lacks it; null: all of the stage"
_RULE: Final = "of the input, which it breaks"
_ID: Final = "of the dead letter, to show it or to replay it"
_REPLAYED: Final = (
    "the message by which it is replayed, the last time; the outcome stays as it is. null also when"
    " that is long ago: the newest 100,000 are known"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterPlace:
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedAs:
    """The position of the message by which a record is replayed."""

    topic: str
    partition: int
    offset: int
    edited: bool = field(
        default=False, metadata={"description": "true: by what a person made of it"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadOffset:
    """A record of the token, and where it is now."""

    topic: str
    partition: int
    offset: int
    stage: str
    sink: str | None = field(metadata={"description": _ONLY_SINK})
    reason: str = field(metadata={"description": meanings(DeadReason)})
    rule: str | None = field(metadata={"description": _RULE})
    message: str
    dead_letter: LetterPlace | None
    id: str | None = field(metadata={"description": _ID})
    exact: Literal[True] = True
    replayed_as: ReplayedAs | None = field(default=None, metadata={"description": _REPLAYED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRange:
    """At most `up_to` of these records. What was made of them went to a dead-letter topic in a
    later stage, or they went there long ago."""

    topic: str
    partition: int
    start: int
    end: int = field(metadata={"description": "exclusive"})
    stage: str
    sink: str | None = field(metadata={"description": _ONLY_SINK})
    up_to: int
    reason: str = field(metadata={"description": meanings(DeadReason)})
    rule: str | None = field(metadata={"description": _RULE})
    message: str
    exact: Literal[False] = False


Dead = DeadOffset | DeadRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Records that the manifest says to drop, in the batches with the token."""

    rule: str = field(metadata={"description": "after the name of its input"})
    stage: str
    up_to: int


Replays = Callable[[str], ReplayedAs | None]
"""Where the replay of a letter is, by its id."""
Limit = Vector | None
"""Only records below it count; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadAsked:
    """The dead letters of a topic that belong to a token: the spans, and a limit by key of stage or
    sink. `names`: the present names of stages and sinks, by their keys."""

    topic: str
    spans: tuple[Span, ...]
    limits: Mapping[str, Limit]
    names: Mapping[str, str] = field(default_factory=dict, hash=False)

    def limit_of(self, entry: DeadEntry) -> int:
        """Return the offset below which the records of this entry are the token's."""
        who = entry.sink or entry.stage
        limit = self.limits.get(who, {})
        if limit is None or entry.topic_id in vectors.topics_deleted_in(limit):
            return vectors.ENDLESS
        return limit.get((entry.topic_id, entry.partition), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRun:
    """Entries to look up: those that overlap it; none is longer than `longest`."""

    topic_id: str
    partition: int
    start: int
    end: int
    longest: int

    @property
    def key(self) -> TopicPartition:
        return (self.topic_id, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRecords:
    """The dead records of a token. `cut`: there are more than were read."""

    found: tuple[Dead, ...] = ()
    count: int = 0
    cut: bool = False


NONE: Final = DeadRecords()


def runs_of(asked: Iterable[DeadAsked], known: Mapping[TopicPartition, DeadCount]) -> list[DeadRun]:
    """Return where to look, if any entries are counted there."""
    spans = _Spans(span for each in asked for span in each.spans)
    return [
        DeadRun(topic_id=key[0], partition=key[1], start=start, end=end, longest=count.longest)
        for key, count in known.items()
        if count.entries
        for start, end in _apart(spans.of(key), count.longest)
    ]


def _apart(runs: Iterable[tuple[int, int]], gap: int) -> Sequence[tuple[int, int]]:
    """Return the runs so that no entry overlaps two of them: each entry is read once."""
    found: list[tuple[int, int]] = []
    for start, end in runs:
        if found and start < found[-1][1] + gap:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return [(found[0][0], found[-1][1])] if len(found) > RUNS_MAX else found


def nowhere(_: str) -> None:
    """Return None: nothing is replayed."""


def dead_records_of(
    asked: Iterable[DeadAsked],
    entries: Iterable[DeadEntry],
    *,
    cut: bool,
    replays: Replays = nowhere,
) -> DeadRecords:
    """Return each entry once, whichever of the token's parts asks for it."""
    asking = [(each, _Spans(each.spans)) for each in asked]
    found: dict[DeadEntry, str] = {}
    for entry in entries:
        for each, spans in asking:
            if spans.within(entry, each.limit_of(entry)):
                found.setdefault(entry, each.topic)
    together = _Spans(span for each, _ in asking for span in each.spans)
    names = {key: name for each, _ in asking for key, name in each.names.items()}
    records = (_as_dead(entry, topic, together, replays, names) for entry, topic in found.items())
    ordered = tuple(sorted(records, key=place_of))
    return DeadRecords(found=ordered, count=_count(found, together), cut=cut)


def place_of(dead: Dead) -> tuple[str, int, int, str, str]:
    at = dead.offset if isinstance(dead, DeadOffset) else dead.start
    return dead.topic, dead.partition, at, dead.stage, dead.sink or ""


class _Spans:
    """The spans of a token, prepared for many entries."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._runs: dict[TopicPartition, list[tuple[int, int]]] = {}
        for span in vectors.merge_spans(span for span in spans if span.start < span.end):
            self._runs.setdefault(span.key, []).append((span.start, span.end))
        self.size = sum(map(_size, self._runs.values()))

    def of(self, key: TopicPartition) -> Sequence[tuple[int, int]]:
        return self._runs.get(key, ())

    def within(self, entry: DeadEntry, limit: int = vectors.ENDLESS) -> list[tuple[int, int]]:
        """Return what the entry and the spans share below the limit."""
        runs = self.of((entry.topic_id, entry.partition))
        return [
            (max(start, low), min(end, high, limit))
            for low, high in entry.runs or ((entry.start, entry.end),)
            if low < limit
            for start, end in _between(runs, low, min(high, limit))
        ]


def _between(runs: Sequence[tuple[int, int]], low: int, high: int) -> Sequence[tuple[int, int]]:
    """Return the runs that overlap [low, high)."""
    first = bisect_right(runs, low, key=lambda run: run[1])
    last = bisect_left(runs, high, key=lambda run: run[0])
    return runs[first:last]


def _size(runs: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in runs)


def _count(entries: Iterable[DeadEntry], spans: _Spans) -> int:
    """Return the number of records. One record may be dead in several stages and sinks. Of a range,
    no more records count than the token has there."""
    exact: set[tuple[str, int, int]] = set()
    up_to: dict[str, int] = {}
    room: dict[str, int] = {}
    for entry in entries:
        if entry.exact:
            exact.add((entry.topic_id, entry.partition, entry.start))
        else:
            up_to[entry.id] = entry.up_to
            room[entry.id] = room.get(entry.id, 0) + _size(spans.within(entry))
    ranges = sum(min(most, room[hop]) for hop, most in up_to.items())
    return min(len(exact) + ranges, spans.size)


def _as_dead(
    entry: DeadEntry, topic: str, spans: _Spans, replays: Replays, names: Mapping[str, str]
) -> Dead:
    """Return the entry as answers show it. Of an old range only the token's part is shown."""
    stage = names.get(entry.stage, entry.stage.rpartition("@")[0])
    key = entry.sink or ""
    sink = names.get(key, key.partition("/")[2].rpartition("@")[0]) or None
    if not entry.exact:
        mine = spans.within(entry) if entry.runs else [(entry.start, entry.end)]
        return DeadRange(
            topic=topic,
            partition=entry.partition,
            start=mine[0][0],
            end=mine[-1][1],
            stage=stage,
            sink=sink,
            up_to=min(entry.up_to, _size(mine)),
            reason=entry.reason,
            rule=entry.rule,
            message=entry.message,
        )
    died, letter = _where_it_died(entry, topic), _id(entry)
    return DeadOffset(
        topic=died.topic,
        partition=died.partition,
        offset=died.offset,
        stage=stage,
        sink=sink,
        reason=entry.reason,
        rule=entry.rule,
        message=entry.message,
        dead_letter=_letter(entry),
        id=letter,
        replayed_as=None if letter is None else replays(letter),
    )


def _where_it_died(entry: DeadEntry, topic: str) -> DeadSource:
    """Return the position of the record, also if it died in a replay."""
    if entry.source is not None:
        return entry.source
    return DeadSource(
        topic=topic, topic_id=entry.topic_id, partition=entry.partition, offset=entry.start
    )


def _id(entry: DeadEntry) -> str | None:
    if entry.dead_topic is None:
        return None
    letter = LetterId(
        topic=entry.dead_topic,
        partition=entry.dead_partition,
        offset=entry.dead_offset,
        source=entry.start if entry.source is None else entry.source.offset,
    )
    return str(letter)


def _letter(entry: DeadEntry) -> LetterPlace | None:
    if entry.dead_topic is None:
        return None
    return LetterPlace(
        topic=entry.dead_topic, partition=entry.dead_partition, offset=entry.dead_offset
    )
