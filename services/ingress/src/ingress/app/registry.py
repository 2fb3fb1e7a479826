"""Resolves the names in a request, and checks topics against the ids that pipelines read.

A pipeline that was applied here a moment ago is "not ready", not "unknown": its record comes back
through Kafka.
"""

from collections.abc import Callable

from ingress.app.ports import Directory, Mint, Topics
from ingress.core.inputs import find_input, no_pipeline, not_ready
from ingress.core.refusals import Refusal
from shared.events import InputDefinition, PipelineRecord
from shared.kafka_admin import TopicIdentity
from shared.pipelines import Life
from shared.settings import DEFAULT_TENANT

APPLIED_AGE_MS_MAX = 30_000  # longer than the stage runner needs to answer an `apply`


class Registry:
    def __init__(
        self, directory: Directory, topics: Topics, mint: Mint, caught_up: Callable[[], bool]
    ) -> None:
        """`caught_up`: whether the directory holds all that was there when this process began."""
        self._caught_up = caught_up
        self._directory = directory
        self._topics = topics
        self._mint = mint
        self._applied: dict[str, int] = {}

    def applied(self, name: str) -> None:
        now = self._mint.now_ms()
        recent = {n: at for n, at in self._applied.items() if now - at < APPLIED_AGE_MS_MAX}
        self._applied = {**recent, name: now}

    def pipeline(self, name: str) -> PipelineRecord:
        record = self._directory.by_name(DEFAULT_TENANT, name)
        if record is not None:
            return record
        self._require_all()
        if self._just_applied(name):
            raise not_ready("pipeline", f"pipeline {name} was applied just now")
        raise no_pipeline(name, [known.name for known in self._directory.living(DEFAULT_TENANT)])

    def life_for(self, name: str) -> Life:
        self._require_all()  # else the number of lives of this name may be another one
        return self._directory.life_for(DEFAULT_TENANT, name)

    def input(self, pipeline: str, name: str) -> tuple[PipelineRecord, InputDefinition]:
        record = self.pipeline(pipeline)
        try:
            return record, find_input(record, name)
        except Refusal as refusal:
            if refusal.slug == "input_not_found" and self._just_applied(pipeline):
                reason = f"{refusal.detail}, but it was applied just now"
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

    def _require_all(self) -> None:
        if not self._caught_up():
            raise Refusal(
                "pipeline_not_ready", "ingress has just started and still reads what pipelines are"
            )

    def _just_applied(self, name: str) -> bool:
        at = self._applied.get(name)
        return at is not None and self._mint.now_ms() - at < APPLIED_AGE_MS_MAX
