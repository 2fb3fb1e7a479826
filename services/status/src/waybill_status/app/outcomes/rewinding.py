"""Finds which sinks of an outcome show older rows again: see `core.outcomes.rewinding`."""

from collections.abc import Mapping

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.token_views import TokenView
from waybill_shared.contract.tokens import Token, pipeline_id
from waybill_status.app.ports import News, Owners, SlotStore
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.rewinding import (
    Rewinding,
    find_rewinding,
    find_upsert_sinks,
    with_rewinding,
)
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, usable_slot


class RewindingSinks:
    """Asks Kafka for the newest record of a pipeline only if it has a sink that replaces rows, and
    Redis only if a stage of it was rewound."""

    def __init__(self, owners: Owners, news: News, store: SlotStore) -> None:
        self._owners = owners
        self._news = news
        self._store = store

    async def mark(self, token: Token, asked: TokenView, outcome: Outcome) -> Outcome:
        """Return the outcome with the sinks that show older rows again."""
        if not outcome.stages or not any(map(find_upsert_sinks, self._records(token, asked))):
            return outcome
        sure = await self._news.catch_up()
        records = self._records(token, asked)
        if not sure:
            found = {each.name: dict.fromkeys(find_upsert_sinks(each)) for each in records}
            return with_rewinding(outcome, found)
        rewound = [each for each in records if each.rewinds]
        return with_rewinding(outcome, await self._find(rewound)) if rewound else outcome

    async def _find(self, rewound: list[PipelineRecord]) -> Mapping[str, Rewinding]:
        keys = {each.name: (each.tenant, each.pipeline_uid) for each in rewound}
        readings: Mapping[PipelineKey, SlotReading] = {}
        try:
            readings = await self._store.read(keys.values())
        except Retryable:
            pass  # nobody knows then
        return {
            each.name: find_rewinding(each, usable_slot(readings.get(keys[each.name])))
            for each in rewound
        }

    def _records(self, token: Token, asked: TokenView) -> list[PipelineRecord]:
        """Return the pipelines of the token, and those that it is asked through."""
        found = [self._owners.owner_of(part.pipeline_id) for part in token.parts]
        tenant = next((each.tenant for each in found if each is not None), "")
        ids = [pipeline_id(tenant, step.uid) for step in asked.through]
        found += [self._owners.owner_of(each) for each in ids]
        return [*{each.pipeline_uid: each for each in found if each is not None}.values()]
