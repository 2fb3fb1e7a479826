"""Finds which sinks of outcomes show older rows again: see `core.outcomes.rewinding`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.token_views import TokenView
from waybill_shared.contract.tokens import Token, pipeline_id
from waybill_status.app.ports import News, Owners, SlotStore, SlotViews
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.rewinding import (
    Rewinding,
    find_rewinding,
    find_upsert_sinks,
    nobody_knows,
    unite,
    with_rewinding,
)
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, usable_slot


class RewindingSinks:
    """Asks Kafka for the newest records only if a pipeline may have a sink that replaces rows, and
    Redis only if a stage of one was rewound."""

    def __init__(self, owners: Owners, news: News, store: SlotStore) -> None:
        self._owners = owners
        self._news = news
        self._store = store

    async def mark(
        self,
        tokens: Sequence[Token],
        asked: TokenView,
        outcomes: Sequence[Outcome],
        slots: SlotViews,
    ) -> list[Outcome]:
        """Return the outcomes with the sinks that show older rows again. `slots`: what they were
        judged by."""
        shown = any(outcome.stages for outcome in outcomes)
        if not shown or not any(_may_upsert(each, slots) for each in self._records(tokens, asked)):
            return [*outcomes]
        sure = await self._news.catch_up()
        records = [*self._records(tokens, asked)]
        if sure:
            found = await self._find([each for each in records if each.rewinds])
        else:
            found = unite((each.name, _guess(each, slots)) for each in records)
        return [with_rewinding(outcome, found) for outcome in outcomes] if found else [*outcomes]

    async def _find(self, rewound: Sequence[PipelineRecord]) -> Mapping[str, Rewinding]:
        keys = {each.pipeline_uid: (each.tenant, each.pipeline_uid) for each in rewound}
        readings: Mapping[PipelineKey, SlotReading] = {}
        if keys:
            with suppress(Retryable):  # nobody knows then
                readings = await self._store.read(keys.values())
        return unite(
            (
                each.name,
                find_rewinding(each, usable_slot(readings.get(keys[each.pipeline_uid]))),
            )
            for each in rewound
        )

    def _records(self, tokens: Sequence[Token], asked: TokenView) -> Iterator[PipelineRecord]:
        """Yield the pipelines of the tokens, and those that they are asked through."""
        ids = dict.fromkeys(part.pipeline_id for token in tokens for part in token.parts)
        own = [each for each in map(self._owners.owner_of, ids) if each is not None]
        yield from own
        tenant = own[0].tenant if own else ""
        for step in asked.through:
            record = self._owners.owner_of(pipeline_id(tenant, step.uid))
            if record is not None:
                yield record


def _may_upsert(record: PipelineRecord, slots: SlotViews) -> bool:
    """Return True if the pipeline has a sink that replaces rows, or if the record that is known
    here is older than what the outcome was judged by."""
    return _is_behind(record, slots) or bool(find_upsert_sinks(record))


def _guess(record: PipelineRecord, slots: SlotViews) -> Rewinding:
    if _is_behind(record, slots):
        return nobody_knows(record)
    return dict.fromkeys(find_upsert_sinks(record))


def _is_behind(record: PipelineRecord, slots: SlotViews) -> bool:
    try:
        return slots.view((record.tenant, record.pipeline_uid)).generation > record.generation
    except KeyError:  # a pipeline that needed no judgement
        return False
