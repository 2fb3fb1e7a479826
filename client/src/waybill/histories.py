"""What happened to a pipeline, as values. Never talks to anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from waybill.fields import Fields, no_json
from waybill.pipelines import PipelineFailure
from waybill.questions import Question, pipeline_events

PAGE_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEvent:
    """Something that happened to a pipeline: a claim, a change of phase, an obstacle, maintenance.

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


class HistoryPages:
    """The pages of a history: what to ask for next, and the events of each answer."""

    def __init__(self, name: str, after: str | None, limit: int | None) -> None:
        self._name = name
        self._forward = after is not None
        self._left = limit
        self._params: Mapping[str, str] | None = {} if after is None else {"after": after}
        self._gap: str | None = None

    def next(self) -> Question | None:
        """Return the question for the next page; None if there is none, or none is wanted."""
        if self._params is None or self._left == 0:
            return None
        limit = PAGE_MAX if self._left is None else min(self._left, PAGE_MAX)
        return pipeline_events(self._name, {**self._params, "limit": str(limit)})

    def read(self, page: Fields) -> Iterator[PipelineEvent]:
        """Yield the events of a page, as many as are wanted."""
        cursor = page.text_or_none("next_cursor")
        self._params = None if cursor is None else {"cursor": cursor}
        gap = page.text_or_none("gap") or self._gap
        items = page.objects("items")
        for each in items if self._forward else items[::-1]:
            if self._left == 0:
                return
            self._left = None if self._left is None else self._left - 1
            yield PipelineEvent.read(each, gap if self._forward else None)
            gap = None
        self._gap = gap
