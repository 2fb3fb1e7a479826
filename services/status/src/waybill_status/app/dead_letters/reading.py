"""Shows the dead letters of a pipeline, which are in topics of its own: the newest first, or one.

Nothing of them is stored here: what retention has deleted from its topic is lost.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.dead_letters import LetterId, place_of
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import all_names
from waybill_shared.contract.lacking_sinks import Obstacles
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.process.signal import loop_time_s
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.ports import Replays
from waybill_status.core.dead_letters.dead_letter_view import (
    DeadLetter,
    DeadLetterSummary,
    DeadRecord,
    LetterFilter,
    LetterOwner,
    listed,
    whole,
)
from waybill_status.core.dead_letters.pages import (
    Backwards,
    Bounds,
    Partition,
    cut,
    read_cursor,
    write_cursor,
)

PAGE_S: Final = 15.0  # then the answer has what was found, with where to continue
LIST_HINT: Final = "`waybill dlq list` shows the ids of a pipeline's dead letters"
DELETED_HINT: Final = "a dead-letter topic with a longer retention.ms keeps them longer"
ID_CHARACTERS_MAX: Final = 400  # no id is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedDeadLetter:
    """The letter is below the start of its partition; `since`: time of the oldest record there."""

    since: int | None


Take = Callable[[DeadRecord], DeadLetterSummary | None]


class DeadTopics(Protocol):
    """Topics as readers of committed records see them. Each call raises Retryable."""

    async def bounds(self, topics: Collection[str], since_ms: int | None) -> Bounds:
        """Return the offsets in each partition of the topics that exist; from `since_ms` on, if
        given."""

    async def read(self, asked: Bounds, take: Take) -> Mapping[Partition, list[DeadLetterSummary]]:
        """Return what `take` makes of the records there, in the order of their offsets."""

    async def one(self, id: LetterId) -> DeadRecord | DeletedDeadLetter | None:
        """Return the record; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    items: tuple[DeadLetterSummary, ...]
    next_cursor: str | None


class DeadLetterReader:
    def __init__(self, pipelines: Pipelines, topics: DeadTopics, replays: Replays) -> None:
        self._pipelines = pipelines
        self._topics = topics
        self._replays = replays

    async def page(
        self, caller: Caller, pipeline: str, wanted: LetterFilter, *, limit: int, cursor: str | None
    ) -> Page:
        """Return the newest dead letters, or those after an earlier page. If there is much to
        search, the page may be shorter than `limit`, or empty; the next page continues."""
        record = await self._pipelines.record(caller, pipeline)
        if wanted.stage is not None:
            names = all_names((wanted.stage,), record.stages).get(wanted.stage, frozenset())
            wanted = replace(wanted, names=names)
        ends = None if cursor is None else _parse_cursor(cursor)
        topics = dead_topics(record)
        bounds = await self._topics.bounds(topics, wanted.since)
        if ends is not None:
            bounds = cut(bounds, ends)

        owner = self._owner(record)

        def take(raw: DeadRecord) -> DeadLetterSummary | None:
            return listed(raw, owner, wanted)

        pages, over_at = Backwards(bounds, limit), loop_time_s() + PAGE_S
        while (asked := pages.round()) and loop_time_s() < over_at:
            pages.take(asked, await self._topics.read(asked, take))
        return Page(items=tuple(pages.items), next_cursor=write_cursor(pages.left()))

    async def one(self, caller: Caller, pipeline: str, id: str) -> DeadLetter:
        record = await self._pipelines.record(caller, pipeline)
        place = place_of(id)
        letter = None if place is None else await self._letter(record, place)
        if letter is None:
            detail = f"{id[:ID_CHARACTERS_MAX]!r} is no dead letter of pipeline {record.name}"
            raise Refusal(Slug.DEAD_LETTER_NOT_FOUND, detail, hint=LIST_HINT)
        return letter

    async def _letter(self, record: PipelineRecord, place: LetterId) -> DeadLetter | None:
        """Return the letter. If it was deleted, that is reported only for a topic of this pipeline:
        for other topics nobody knows which pipeline it belonged to."""
        found = await self._topics.one(place)
        if isinstance(found, DeadRecord):
            return whole(found, place, self._owner(record))
        if found is not None and place.topic in dead_topics(record):
            raise _refuse_deleted(place, found)
        return None

    def _owner(self, record: PipelineRecord) -> LetterOwner:
        return LetterOwner(
            uid=record.pipeline_uid,
            stages=record.stages,
            obstacle=Obstacles(record).of,
            replays=partial(self._replays.of, (record.tenant, record.pipeline_uid)),
        )


def dead_topics(record: PipelineRecord) -> list[str]:
    """Return the dead-letter topics of the present manifest. Those of earlier manifests are not
    searched."""
    manifest = record.manifest.model
    read = {source.topic for stage in record.stages for source in stage.inputs}
    return sorted({manifest.dead_letter_topic(topic) for topic in read})


def _parse_cursor(cursor: str) -> Mapping[Partition, int]:
    found = read_cursor(cursor)
    if found is None:
        detail = "the cursor is none of ours: take it from `next_cursor` of the page before"
        error = {"message": detail, "path": "query.cursor"}
        raise Refusal(Slug.INVALID, detail, errors=[error])
    return found


def _refuse_deleted(place: LetterId, gone: DeletedDeadLetter) -> Refusal:
    kept = "nothing" if gone.since is None else f"records since {format_moment(gone.since)}"
    reason = f"{place.topic}[{place.partition}] does not hold it any more: it has {kept}"
    rejected = [{"index": 0, "problem": Slug.DEAD_LETTER_GONE, "reason": reason}]
    detail = f"dead letter {place}: {reason}"
    return Refusal(Slug.DEAD_LETTER_GONE, detail, hint=DELETED_HINT, rejected=rejected)
