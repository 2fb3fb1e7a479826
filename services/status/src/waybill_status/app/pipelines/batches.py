"""Answers which batches a stage had in the last 30 days, as pages.

Promise: who follows the cursors gets each batch that was reported, once in each sink. Commits are
read again from the topic, a bounded part at a time, two at a time; none is kept in memory. Only a
batch of which the first report was never written is missing if the one before is in another part.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import find_meant, names_of
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names
from waybill_shared.contract.words import HistoryGap
from waybill_shared.process.signal import loop_time_s
from waybill_status.app.pipelines.history import OFFSETS_MAX, PAGE_S, Part, read_start
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.batches import (
    BatchesPage,
    BatchGroup,
    ReportedBatch,
    StageBatch,
    group,
)
from waybill_status.core.pipelines.history import Cursor, EventPlace

STEP_MIN: Final = 1_000  # offsets that are read together, at first
STEP_GROWTH: Final = 4
REPORTS_MAX: Final = 4_000  # that are in memory for one page
OVERLAP: Final = 1_000  # offsets before a place, for what was reported again after it
SEARCH_S: Final = 5.0  # then a page ends with what it has


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsTopic:
    """The topic of commits as it is now; `partition` is that of the pipeline."""

    topic_id: str
    partition: int
    start: int
    end: int

    def place(self, offset: int) -> EventPlace:
        return EventPlace(topic_id=self.topic_id, partition=self.partition, offset=offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsReading:
    """The reports of one stage in a part of the topic, up to before `end`."""

    reports: tuple[ReportedBatch, ...]
    end: int


class PastCommits(Protocol):
    """The topic of commits. Each call raises Retryable."""

    async def topic(self, pipeline: PipelineKey) -> CommitsTopic: ...

    async def read(
        self,
        pipeline: PipelineKey,
        stages: Collection[str],
        topic: CommitsTopic,
        part: Part,
        *,
        most: int,
    ) -> ReportsReading:
        """Return the reports there of the stage with these names, at most `most` of them. Raises
        Retryable also if the topic was created again meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    """The stage that is asked for, and the topic with its batches."""

    pipeline: PipelineKey
    stages: tuple[str, ...]
    topic: CommitsTopic
    limit: int


class Batches:
    def __init__(self, pipelines: Pipelines, past: PastCommits) -> None:
        self._pipelines = pipelines
        self._past = past

    async def page(
        self,
        caller: Caller,
        name: str,
        stage: str,
        *,
        limit: int,
        after: str = "",
        cursor: str = "",
    ) -> BatchesPage:
        """Return the newest batches, or those after one, or those of the page after another one.
        If there is much to search, a page may have less than `limit`, or nothing, and `next`."""
        record = await self._pipelines.record(caller, name)
        names = _names_of_stage(record, stage)
        wanted = read_start(after, cursor, "batch of a stage")
        key = (record.tenant, record.pipeline_uid)
        try:
            async with asyncio.timeout(PAGE_S):
                topic = await self._past.topic(key)
                where = _Where(pipeline=key, stages=names, topic=topic, limit=limit)
                return await self._page(where, wanted)
        except TimeoutError as error:
            detail = f"the batches could not be read within {PAGE_S:.0f} s: try again"
            raise Retryable(detail) from error

    async def _page(self, where: _Where, wanted: Cursor) -> BatchesPage:
        gap = _gap(where.topic, wanted.place)
        if gap not in {None, HistoryGap.EXPIRED}:
            if wanted.back:
                return BatchesPage(items=(), gap=gap)
            wanted = Cursor()
        if wanted.back:
            page = await self._back(where, wanted.place)
        else:
            page = await self._forward(where, wanted.place)
        return replace(page, gap=gap)

    async def _back(self, where: _Where, place: EventPlace | None) -> BatchesPage:
        topic = where.topic
        high = topic.end if place is None else min(place.offset, topic.end)
        reports, low = await self._search_back(where, high)
        groups, unclear = group(reports)
        if low > topic.start and len(groups) > 1:
            # The other reports of the first one may be before, and what an unclear one repeats.
            clear = [each for each in groups if unclear is None or each.place.offset > unclear]
            groups = clear if clear and unclear is not None else groups[1:]
            low = groups[0].place.offset
        if len(groups) > where.limit:
            groups = groups[-where.limit :]
            low = groups[0].place.offset
        following = Cursor(place=topic.place(low), back=True) if low > topic.start else None
        return BatchesPage(items=_describe(groups), next=following)

    async def _search_back(self, where: _Where, high: int) -> tuple[list[ReportedBatch], int]:
        """Return the reports before an offset, and where the search has ended."""
        start, low, step = where.topic.start, high, STEP_MIN
        over_at, reports = loop_time_s() + SEARCH_S, list[ReportedBatch]()
        while low > start and high - low < OFFSETS_MAX and len(reports) < REPORTS_MAX:
            if reports and loop_time_s() > over_at:
                break
            first = max(start, low - step, high - OFFSETS_MAX)
            part = (first, low)
            reading = await self._past.read(
                where.pipeline, where.stages, where.topic, part, most=low - first
            )
            reports[:0], low = reading.reports, first
            if len(reading.reports) < STEP_MIN / STEP_GROWTH:
                step *= STEP_GROWTH
            groups, unclear = group(reports)
            if len(groups) > where.limit and unclear is None:
                break
        return reports, low

    async def _forward(self, where: _Where, place: EventPlace | None) -> BatchesPage:
        topic, seen = where.topic, -1 if place is None else place.offset
        # From before the place: what is a repetition depends on the reports there.
        first = min(topic.end, max(topic.start, seen - OVERLAP))
        end = min(topic.end, first + OFFSETS_MAX)
        reading = await self._past.read(
            where.pipeline, where.stages, topic, (first, end), most=REPORTS_MAX
        )
        groups = [each for each in group(reading.reports)[0] if each.place.offset > seen]
        more, low = reading.end < topic.end, max(seen, reading.end - 1)
        if more and len(groups) > 1:
            groups.pop()  # its other reports may come later
            low = groups[-1].place.offset
        if len(groups) > where.limit:
            more, groups = True, groups[: where.limit]
            low = groups[-1].place.offset
        following = Cursor(place=topic.place(low)) if more else None
        return BatchesPage(items=_describe(groups), next=following)


def _describe(groups: list[BatchGroup]) -> tuple[StageBatch, ...]:
    return tuple(each.describe() for each in groups)


def _gap(topic: CommitsTopic, place: EventPlace | None) -> HistoryGap | None:
    if place is None:
        return None
    if place.topic_id != topic.topic_id:
        return HistoryGap.TOPIC_RECREATED
    if place.partition != topic.partition:
        return HistoryGap.OTHER_PIPELINE
    return HistoryGap.EXPIRED if place.offset + 1 < topic.start else None


def _names_of_stage(record: PipelineRecord, stage: str) -> tuple[str, ...]:
    """Return all names of the stage; raise Refusal if there is none."""
    meant = find_meant(stage, record.stages)
    if meant is not None:
        return names_of(meant)
    known = [each.name for each in record.stages]
    hint = hint_of_names(stage, known, "known stages")
    message = f"pipeline {record.name} has no stage {stage!r:.80}"
    raise Refusal(Slug.STAGE_NOT_FOUND, message, hint=hint, known=known)
