"""What happened to a pipeline, as values. Never talks to anything."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Generic, TypeVar

from waybill.fields import Fields, no_json
from waybill.pipelines import PipelineFailure
from waybill.questions import Question, pipeline_past

PAGE_MAX: Final = 1_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEvent:
    """Something that happened to a pipeline: a claim, a change of phase, an obstacle, maintenance,
    or a time of its schedule that was skipped.

    `id` may be given to `Client.history` as `after`. `actor` asked for it. `gap`: a word that says
    why events before this one may be missing.
    """

    id: str
    at: datetime | None
    kind: str
    generation: int | None
    phase_from: str | None
    phase: str
    reason: str | None
    actor: str | None
    attempt: int
    blocked_by: str | None
    error: PipelineFailure | None
    next_attempt_at: datetime | None
    gap: str | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, gap: str | None = None) -> "PipelineEvent":
        error = fields.object_or_none("error")
        return cls(
            id=fields.text("id"),
            at=fields.moment_or_none("at"),
            kind=fields.text("kind"),
            generation=fields.whole_or_none("generation"),
            phase_from=fields.text_or_none("phase_from"),
            phase=fields.text("phase"),
            reason=fields.text_or_none("reason"),
            actor=fields.text_or_none("actor"),
            attempt=fields.whole_or_none("attempt") or 0,
            blocked_by=fields.text_or_none("blocked_by"),
            error=None if error is None else PipelineFailure.read(error),
            next_attempt_at=fields.moment_or_none("next_attempt_at"),
            gap=gap,
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """A run of a pipeline: from the start of a driver to its end.

    `id` may be given to `Client.runs` as `after`. `began` is None if the run is older than what is
    kept. `end` is a word that says why it has ended; None while it goes on. `parallelism`: how many
    of its tasks ran at once. `batches` have ended well, and sinks have got `rows`; None: not known.
    `gap`: a word that says why runs before this one may be missing.
    """

    id: str
    run: int
    generation: int | None
    began: datetime | None
    ended: datetime | None
    phase: str
    end: str | None
    reason: str | None
    started_by: str | None
    ended_by: str | None
    attempt: int
    error: PipelineFailure | None
    parallelism: int | None = None
    gap: str | None = None
    batches: int | None = None
    rows: int | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, gap: str | None = None) -> "PipelineRun":
        error = fields.object_or_none("error")
        return cls(
            id=fields.text("id"),
            run=fields.whole("run"),
            generation=fields.whole_or_none("generation"),
            began=fields.moment_or_none("began"),
            ended=fields.moment_or_none("ended"),
            phase=fields.text("phase"),
            end=fields.text_or_none("end"),
            reason=fields.text_or_none("reason"),
            started_by=fields.text_or_none("started_by"),
            ended_by=fields.text_or_none("ended_by"),
            attempt=fields.whole_or_none("attempt") or 0,
            error=None if error is None else PipelineFailure.read(error),
            parallelism=fields.whole_or_none("parallelism"),
            batches=fields.whole_or_none("batches"),
            rows=fields.whole_or_none("rows"),
            gap=gap,
            raw=fields.raw,
        )


class HistoryPages(Generic[T]):
    """The pages of a history: what to ask for next, and the entries of each answer."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, str]], Question],
        read: Callable[[Fields, str | None], T],
        *,
        after: str | None,
        limit: int | None,
        page_max: int = PAGE_MAX,
    ) -> None:
        self._page_max = page_max
        self._ask = ask
        self._read = read
        self._forward = after is not None
        self._left = limit
        self._params: Mapping[str, str] | None = {} if after is None else {"after": after}
        self._gap: str | None = None

    def next(self) -> Question | None:
        """Return the question for the next page; None if there is none, or none is wanted."""
        if self._params is None or self._left == 0:
            return None
        limit = self._page_max if self._left is None else min(self._left, self._page_max)
        return self._ask({**self._params, "limit": str(limit)})

    def read(self, page: Fields) -> Iterator[T]:
        """Yield the entries of a page, as many as are wanted."""
        cursor = page.text_or_none("next_cursor")
        self._params = None if cursor is None else {"cursor": cursor}
        gap = page.text_or_none("gap") or self._gap
        items = page.objects("items")
        for each in items if self._forward else items[::-1]:
            if self._left == 0:
                return
            self._left = None if self._left is None else self._left - 1
            yield self._read(each, gap if self._forward else None)
            gap = None
        self._gap = gap


def event_pages(name: str, after: str | None, limit: int | None) -> HistoryPages[PipelineEvent]:
    ask = partial(pipeline_past, name, "events")
    return HistoryPages(ask, PipelineEvent.read, after=after, limit=limit)


def run_pages(name: str, after: str | None, limit: int | None) -> HistoryPages[PipelineRun]:
    ask = partial(pipeline_past, name, "runs")
    return HistoryPages(ask, PipelineRun.read, after=after, limit=limit)
