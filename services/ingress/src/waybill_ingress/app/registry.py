"""Resolves the names in a request, and checks topics against the ids that pipelines read.

What was told done is known: before a name is called unknown, the end of the topic is awaited. A
pipeline that was applied here a moment ago is "not ready" until then.
"""

from waybill_ingress.app.ports import (
    Directory,
    Mint,
    News,
    Topics,
)
from waybill_ingress.core.demands import Demand, behind, meets
from waybill_ingress.core.inputs import find_input, no_pipeline, not_ready
from waybill_ingress.core.refusals import Refusal
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.pipelines import Life
from waybill_shared.kafka.admin import TopicIdentity
from waybill_shared.settings.service import DEFAULT_TENANT

APPLIED_AGE_MS_MAX = 30_000  # longer than the stage runner needs to answer an `apply`


class Registry:
    def __init__(self, directory: Directory, news: News, topics: Topics, mint: Mint) -> None:
        self._directory = directory
        self._news = news
        self._topics = topics
        self._mint = mint
        self._applied: dict[str, int] = {}

    def applied(self, name: str) -> None:
        now = self._mint.now_ms()
        recent = {n: at for n, at in self._applied.items() if now - at < APPLIED_AGE_MS_MAX}
        self._applied = {**recent, name: now}

    async def pipeline(self, name: str, demand: Demand | None = None) -> PipelineRecord:
        """As it was at this call, at the earliest, before it is called unknown or behind."""
        if self._news.begun() and (record := self._found(name, demand)) is not None:
            return record
        heard = await self._news.heard()
        record = self._directory.by_name(DEFAULT_TENANT, name)
        if record is None or not (heard or self._news.begun()):
            raise self._unknown(name, heard=heard)
        if demand is not None and self._found(name, demand) is None:
            raise behind(record, demand)
        return record

    async def life_for(self, name: str) -> Life:
        """Of a name that is free, only when each of its lives is known."""
        known = self._directory.by_name(DEFAULT_TENANT, name) is not None
        if not (known and self._news.begun()) and not await self._news.heard():
            raise self._unknown(name, heard=False)
        return self._directory.life_for(DEFAULT_TENANT, name)

    async def input(
        self, pipeline: str, name: str, demand: Demand | None = None
    ) -> tuple[PipelineRecord, InputDefinition]:
        record = await self.pipeline(pipeline, demand)
        try:
            return record, find_input(record, name)
        except Refusal:
            heard = await self._news.heard()
        record = await self.pipeline(pipeline, demand)
        try:
            return record, find_input(record, name)
        except Refusal as refusal:
            if refusal.slug == "input_not_found" and (not heard or self._just_applied(pipeline)):
                reason = f"{refusal.detail}, but it may have been changed just now"
                raise not_ready("input", reason, **refusal.members) from refusal
            raise

    async def present(
        self, record: PipelineRecord, source: InputDefinition, *, fresh: bool
    ) -> TopicIdentity:
        """The topic of that input of `record`, which must be the very one that the pipeline reads.

        Ids never return: seen before and, `fresh`, after a write, it was the same all the time.
        """
        identity = None if fresh else self._topics.last_seen(source.topic)
        if identity is None or identity.topic_id != source.topic_id:
            identity = await self._topics.describe(source.topic)
        if identity is None or identity.topic_id != source.topic_id:
            present = "is gone" if identity is None else f"now has id {identity.topic_id}"
            raise Refusal(
                "topic_recreated",
                f"topic {source.topic} {present}, but input {source.name} reads id"
                f" {source.topic_id}: no token can be given",
                hint=f"`waybill restart {record.name} --from earliest` (or latest) goes on with the"
                " topic as it is now; what was not read of the old one ends lost",
            )
        return identity

    def _found(self, name: str, demand: Demand | None) -> PipelineRecord | None:
        record = self._directory.by_name(DEFAULT_TENANT, name)
        uid = demand.uid if demand is not None else None
        named = self._directory.by_uid(uid) if uid is not None else None
        return record if record is not None and meets(record, demand, named) else None

    def _unknown(self, name: str, *, heard: bool) -> Refusal:
        if not heard:
            detail = "this ingress does not know all pipelines yet, or cannot ask kafka: try again"
            return Refusal("pipeline_not_ready", detail)
        if self._just_applied(name):
            return not_ready("pipeline", f"pipeline {name} was applied just now")
        return no_pipeline(name, [known.name for known in self._directory.living(DEFAULT_TENANT)])

    def _just_applied(self, name: str) -> bool:
        at = self._applied.get(name)
        return at is not None and self._mint.now_ms() - at < APPLIED_AGE_MS_MAX
