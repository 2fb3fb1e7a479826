"""Makes tokens for records that reached Kafka by other ways.

Promise: no token names an offset that is not written, or a topic other than the one that the
pipeline reads.
"""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby

from waybill_ingress.app.measuring import count_token
from waybill_ingress.app.ports import Sealed, SealingClock, Topics
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.token_coverage import (
    NamedSpan,
    StoredOffsets,
    beyond,
    check_cluster,
    check_identity,
    check_partitions,
    input_of,
    named_spans,
    part_of,
    stored_spans,
)
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.vectors import Span

END_RETRY_MS = 2_000  # a new leader may need so long to know the last acknowledged record
END_RETRY_PAUSE_S = 0.1


class TokenIssuer:
    def __init__(self, registry: Registry, topics: Topics, mint: SealingClock) -> None:
        self._registry = registry
        self._topics = topics
        self._mint = mint

    async def for_input(
        self, caller: Caller, pipeline: str, name: str, *, demand: Demand | None = None
    ) -> Sealed:
        """Return a token for all that the input contains now."""
        record, source = await self._registry.input(caller.tenant, pipeline, name, demand)
        identity = await self._registry.present(record, source, fresh=True)
        stored = await self._read_stored(source.topic, identity.partitions)
        await self._registry.present(record, source, fresh=True)
        spans = stored_spans(record, source, stored)
        count_token("input")
        return self._mint.seal([part_of(record, spans, counted=False)], tenant=caller.tenant)

    async def for_nothing(self, caller: Caller, pipeline: str, name: str) -> Sealed:
        """Return a token that is complete at once, for a request without a record."""
        record, source = await self._registry.input(caller.tenant, pipeline, name)
        (topic_id, partition), base = min(source.bases.items())
        none = Span(topic_id=topic_id, partition=partition, start=base, end=base)
        return self._mint.seal([part_of(record, [none])], tenant=caller.tenant)

    async def for_positions(
        self,
        caller: Caller,
        pipeline: str,
        positions: Sequence[NamedSpan],
        *,
        cluster_id: str | None = None,
        demand: Demand | None = None,
    ) -> Sealed:
        """Return a token for these positions. Raises Refusal for one that does not exist.

        `cluster_id`: of the Kafka that the producer wrote to, if it is to be compared.
        """
        record = await self._registry.pipeline(caller.tenant, pipeline, demand)
        if cluster_id is not None:
            check_cluster(cluster_id, await self._topics.cluster_id())
        spans: list[Span] = []
        ordered = sorted(positions, key=lambda position: position.topic)
        for topic, group in groupby(ordered, key=lambda position: position.topic):
            spans += await self._spans(record, topic, list(group))
        assumed = any(position.topic_id is None for position in positions)
        parts = [part_of(record, spans)]
        count_token("positions")
        return self._mint.seal(parts, tenant=caller.tenant, identity_assumed=assumed)

    async def _read_stored(self, topic: str, partitions: Iterable[int]) -> dict[int, StoredOffsets]:
        """Return what each partition contains now. What is written meanwhile may be in it."""
        wanted = tuple(partitions)
        starts = await self._topics.starts(topic, wanted)
        ends = await self._topics.ends(topic, wanted)
        return {at: (starts[at], ends[at]) for at in wanted}

    async def _spans(
        self, record: PipelineRecord, topic: str, positions: list[NamedSpan]
    ) -> tuple[Span, ...]:
        source = input_of(record, topic)
        identity = await self._registry.present(record, source, fresh=True)
        for position in positions:
            check_identity(position, identity.topic_id)
        check_partitions(positions, identity.partitions)
        await self._check_ends(topic, positions)
        await self._registry.present(record, source, fresh=True)
        return named_spans(identity.topic_id, positions)

    async def _check_ends(self, topic: str, positions: list[NamedSpan]) -> None:
        partitions = {position.partition for position in positions}
        deadline = self._mint.now_ms() + END_RETRY_MS
        while refusal := beyond(positions, await self._topics.ends(topic, partitions)):
            if self._mint.now_ms() > deadline:
                raise refusal
            await asyncio.sleep(END_RETRY_PAUSE_S)
