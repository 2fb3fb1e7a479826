"""Makes tokens for records that came into Kafka by other ways. Promise: no token names a position
that is not written, or a topic other than the one that the pipeline reads."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from ingress.app.ports import Mint, Sealed, Topics
from ingress.app.registry import Registry
from ingress.core.births import (
    Position,
    beyond,
    check_cluster,
    check_identity,
    check_partitions,
    given_spans,
    held_spans,
    inputs_of,
    part_of,
)
from shared.events import PipelineRecord
from shared.tokens import Part

END_RETRY_MS = 2_000  # a new leader may need that long to know the last acknowledged record
END_RETRY_PAUSE_S = 0.1


class Tokens:
    def __init__(self, registry: Registry, topics: Topics, mint: Mint) -> None:
        self._registry = registry
        self._topics = topics
        self._mint = mint

    async def for_input(self, pipeline: str, name: str) -> Sealed:
        """A token for all that the input holds now."""
        record, source = self._registry.input(pipeline, name)
        identity = await self._registry.present(record, source, fresh=True)
        ends = await self._topics.ends(source.topic, identity.partitions)
        await self._registry.present(record, source, fresh=True)
        return self._mint.seal([part_of(record, source, held_spans(source, ends))])

    async def for_positions(
        self, pipeline: str, positions: Sequence[Position], *, cluster_id: str | None = None
    ) -> Sealed:
        """`cluster_id`: of the Kafka that the producer wrote to, if it is to be compared."""
        record = self._registry.pipeline(pipeline)
        if cluster_id is not None:
            check_cluster(cluster_id, await self._topics.cluster_id())
        parts: list[Part] = []
        ordered = sorted(positions, key=lambda position: position.topic)
        for topic, group in groupby(ordered, key=lambda position: position.topic):
            parts += await self._parts(record, topic, list(group))
        assumed = any(position.topic_id is None for position in positions)
        return self._mint.seal(parts, identity_assumed=assumed)

    async def _parts(
        self, record: PipelineRecord, topic: str, positions: list[Position]
    ) -> list[Part]:
        sources = inputs_of(record, topic)
        identity = await self._registry.present(record, sources[0], fresh=True)
        for position in positions:
            check_identity(position, identity.topic_id)
        check_partitions(positions, identity.partitions)
        await self._check_ends(topic, positions)
        await self._registry.present(record, sources[0], fresh=True)
        spans = given_spans(identity.topic_id, positions)
        return [part_of(record, source, spans) for source in sources]

    async def _check_ends(self, topic: str, positions: list[Position]) -> None:
        partitions = {position.partition for position in positions}
        deadline = self._mint.now_ms() + END_RETRY_MS
        while refusal := beyond(positions, await self._topics.ends(topic, partitions)):
            if self._mint.now_ms() > deadline:
                raise refusal
            await asyncio.sleep(END_RETRY_PAUSE_S)
