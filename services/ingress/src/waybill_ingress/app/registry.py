"""Finds what the names in a request mean, and compares topics with the ids that pipelines read.

What was reported as done is known: before a name is refused as unknown, the topic is read to its
end. A pipeline that was applied here a moment ago is "not ready" until the command is answered.
"""

from dataclasses import dataclass

from waybill_ingress.app.ports import Directory, News, SealingClock, Topics
from waybill_ingress.core.if_match import Demand, meets, too_old
from waybill_ingress.core.inputs import find_input, not_ready
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import InputDefinition, PipelineRecord, Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.pipelines import Life, former_name, no_pipeline
from waybill_shared.contract.problems import Slug
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.majority import ASKED_AGAIN

APPLIED_AGE_MS_MAX = 60_000  # a stage runner answers an `apply` sooner, if it is not overloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applied:
    """An `apply` that was sent and is not answered yet."""

    operation: str
    at: int


class Registry:
    def __init__(
        self, directory: Directory, news: News, topics: Topics, mint: SealingClock
    ) -> None:
        self._directory = directory
        self._news = news
        self._topics = topics
        self._mint = mint
        self._applied: dict[tuple[str, str], _Applied] = {}

    def note_applied(self, tenant: str, operation: OperationId) -> None:
        now = self._mint.now_ms()
        recent = {n: a for n, a in self._applied.items() if now - a.at < APPLIED_AGE_MS_MAX}
        applied = _Applied(operation=str(operation), at=now)
        self._applied = {**recent, (tenant, operation.pipeline): applied}

    def note_answered(self, reply: Reply) -> None:
        """Forget the `apply`: the pipeline as it is after that command can be read by now."""
        key = (reply.tenant, reply.pipeline)
        if (applied := self._applied.get(key)) is not None and applied.operation == reply.id:
            del self._applied[key]

    async def pipeline(
        self, tenant: str, name: str, demand: Demand | None = None
    ) -> PipelineRecord:
        """Return the pipeline. Before it is refused as unknown or too old, all until this call is
        read.
        """
        if self._news.has_caught_up() and (record := self._find(tenant, name, demand)) is not None:
            return record
        caught_up = await self._news.catch_up()
        record = self._directory.by_name(tenant, name)
        if record is None or not (caught_up or self._news.has_caught_up()):
            raise self._unknown(tenant, name, caught_up=caught_up)
        if demand is not None and self._find(tenant, name, demand) is None:
            raise too_old(record, demand)
        return record

    async def holder(self, tenant: str, name: str) -> PipelineRecord | None:
        """Return the pipeline that has, had or is about to get that name; None only if there is
        none.
        """
        record = self._directory.by_name(tenant, name)
        if record is None:
            caught_up = await self._news.catch_up()
            record = self._directory.by_name(tenant, name)
            record = record or self._directory.former_holder(tenant, name)
            if record is None and not caught_up:
                raise self._unknown(tenant, name, caught_up=False)
        return record

    async def find_named(self, tenant: str, name: str, to: str) -> PipelineRecord:
        """Return the pipeline of that name, or the one that had it if it is called `to` now."""
        try:
            return await self.pipeline(tenant, name)
        except Refusal as refusal:
            if refusal.slug is Slug.RENAMED and refusal.members["renamed_to"] == to:
                return await self.pipeline(tenant, to)
            raise

    async def lives(self, tenant: str, name: str) -> list[PipelineRecord]:
        """Return all pipelines of all tenants, deleted ones too. `name` is for the refusal.

        These are the ones recorded before this call. While Kafka does not answer, they are the ones
        known here.
        """
        if not await self._news.catch_up() and not self._news.has_caught_up():
            raise self._unknown(tenant, name, caught_up=False)
        return self._directory.lives()

    async def life_for(self, tenant: str, name: str) -> Life:
        """Return the life of a name. For a free name all its earlier lives must be known first."""
        known = self._directory.by_name(tenant, name) is not None
        if not (known and self._news.has_caught_up()) and not await self._news.catch_up():
            raise self._unknown(tenant, name, caught_up=False)
        return self._directory.life_for(tenant, name)

    async def input(
        self, tenant: str, pipeline: str, name: str, demand: Demand | None = None
    ) -> tuple[PipelineRecord, InputDefinition]:
        record = await self.pipeline(tenant, pipeline, demand)
        try:
            return record, find_input(record, name)
        except Refusal:
            caught_up = await self._news.catch_up()
        record = await self.pipeline(tenant, pipeline, demand)
        try:
            return record, find_input(record, name)
        except Refusal as refusal:
            if refusal.slug is Slug.INPUT_NOT_FOUND and (
                not caught_up or self._just_applied(tenant, pipeline)
            ):
                reason = f"{refusal.detail}, but it may have been changed just now"
                raise not_ready(Slug.INPUT_NOT_READY, reason, **refusal.members) from refusal
            raise

    async def present(
        self, record: PipelineRecord, source: InputDefinition, *, fresh: bool
    ) -> TopicIdentity:
        """Return the topic of that input. It must be the one that the pipeline reads. Raises
        Refusal.

        Ids are never used again. So if it is found before a write, and with `fresh` after it, the
        topic was the same all the time.
        """
        identity = None if fresh else self._topics.last_seen(source.topic)
        if identity is None or identity.topic_id != source.topic_id:
            identity = await self._topics.describe(source.topic)
        if identity is None or identity.topic_id != source.topic_id:
            await self._check_others(source)
            present = "does not exist" if identity is None else f"now has id {identity.topic_id}"
            raise Refusal(
                Slug.TOPIC_RECREATED,
                f"topic {source.topic} {present}, but input {source.name} reads id"
                f" {source.topic_id}: no token can be given",
                hint=f"`waybill restart {record.name} --from earliest` (or latest) goes on with the"
                " topic as it is now; what was not read of the old one ends lost",
            )
        return identity

    async def _check_others(self, source: InputDefinition) -> None:
        """Raise Retryable if any broker still reports the old id: each question goes to any of
        them.
        """
        for _ in range(ASKED_AGAIN):
            identity = await self._topics.describe(source.topic)
            if identity is not None and identity.topic_id == source.topic_id:
                raise Retryable(f"topic {source.topic}: brokers do not agree on its id")

    def _find(self, tenant: str, name: str, demand: Demand | None) -> PipelineRecord | None:
        record = self._directory.by_name(tenant, name)
        uid = demand.uid if demand is not None else None
        named = self._directory.by_uid(uid) if uid is not None else None
        return record if record is not None and meets(record, demand, named) else None

    def _unknown(self, tenant: str, name: str, *, caught_up: bool) -> Refusal:
        if not caught_up:
            detail = "this ingress does not know all pipelines yet, or cannot ask kafka: try again"
            return Refusal(Slug.PIPELINE_NOT_READY, detail)
        if (present := self._present_name(tenant, name)) is not None:
            return former_name(name, present)
        if self._just_applied(tenant, name):
            return not_ready(Slug.PIPELINE_NOT_READY, f"pipeline {name} was applied just now")
        return no_pipeline(name, [known.name for known in self._directory.living(tenant)])

    def _present_name(self, tenant: str, name: str) -> str | None:
        """Return what a pipeline is called now that had this name."""
        former = self._directory.former_holder(tenant, name)
        return former.name if former is not None and name in former.was else None

    def _just_applied(self, tenant: str, name: str) -> bool:
        applied = self._applied.get((tenant, name))
        return applied is not None and self._mint.now_ms() - applied.at < APPLIED_AGE_MS_MAX
