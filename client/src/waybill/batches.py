"""The batches of a stage, as values. Never talks to anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from urllib.parse import quote

from waybill.errors import Unusable
from waybill.fields import Fields, no_json
from waybill.histories import HistoryPages
from waybill.questions import pipeline_past


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Records of a partition, from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @classmethod
    def read(cls, fields: Fields) -> "OffsetRange":
        return cls(
            topic=fields.text("topic"),
            partition=fields.whole("partition"),
            start=fields.whole("start"),
            end=fields.whole("end"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBatch:
    """The effect of a batch in one sink. `committed_at` is None if that was not reported, `version`
    if the sink names none."""

    name: str
    rows: int
    committed_at: datetime | None
    version: Mapping[str, object] | None

    @classmethod
    def read(cls, fields: Fields) -> "SinkBatch":
        return cls(
            name=fields.text("name"),
            rows=fields.whole("rows"),
            committed_at=fields.moment_or_none("committed_at"),
            version=fields.mapping_or_none("version"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBatch:
    """A batch of a stage. A big one is several, with the same number and other ranges.

    `id` may be given to `Client.batches` as `after`. `ranges` are the first hundred of
    `ranges_count`, `records` the offsets in all of them. `gap`: a word that says why batches before
    this one may be missing.
    """

    id: str
    batch: int
    generation: int | None
    started_at: datetime | None
    records: int
    ranges: tuple[OffsetRange, ...]
    ranges_count: int
    sinks: tuple[SinkBatch, ...]
    gap: str | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, gap: str | None = None) -> "StageBatch":
        return cls(
            id=fields.text("id"),
            batch=fields.whole("batch"),
            generation=fields.whole_or_none("generation"),
            started_at=fields.moment_or_none("started_at"),
            records=fields.whole("records"),
            ranges=tuple(map(OffsetRange.read, fields.objects("ranges"))),
            ranges_count=fields.whole("ranges_count"),
            sinks=tuple(map(SinkBatch.read, fields.objects("sinks"))),
            gap=gap,
            raw=fields.raw,
        )


PAGE_MAX = 500


def batch_pages(
    name: str, stage: str, after: str | None, limit: int | None
) -> HistoryPages[StageBatch]:
    if not stage:
        raise Unusable("the name of the stage is empty")
    ask = partial(pipeline_past, name, f"stages/{quote(stage, safe='')}/batches")
    return HistoryPages(ask, StageBatch.read, after=after, limit=limit, page_max=PAGE_MAX)
