"""Adds partitions to the topic of an input.

Promise: the topic is the one that the pipeline reads, and has so many partitions when this returns.
A stage reads new partitions from their first record, so no token loses anything.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from waybill_ingress.app.ports import SealingClock, TopicGrowth
from waybill_ingress.app.registry import Registry
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Problem, Retryable, UserError

KNOWN_MS_MAX: Final = 10_000  # until brokers report new partitions
POLL_S: Final = 0.05
KEYS_MOVE: Final = "keys move: new records of a key may go to another partition than earlier ones"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownInput:
    topic: str
    partitions: int
    added: int


class InputGrowth:
    def __init__(
        self, registry: Registry, topics: TopicGrowth, clock: SealingClock, *, partitions_max: int
    ) -> None:
        self._registry = registry
        self._topics = topics
        self._clock = clock
        self._partitions_max = partitions_max

    async def grow(
        self, caller: Caller, pipeline: str, name: str, partitions: int, *, confirmed: bool
    ) -> GrownInput:
        """Let the topic of an input have so many partitions. Raise UserError if that is not
        possible, or if nobody has confirmed that keys move.
        """
        record, source = await self._registry.input(caller.tenant, pipeline, name)
        before = len((await self._registry.present(record, source, fresh=True)).partitions)
        _refuse(source.topic, before, partitions, self._partitions_max, confirmed=confirmed)
        if partitions > before:
            await self._topics.add_partitions(source.topic, partitions)
        deadline = self._clock.now_ms() + KNOWN_MS_MAX
        while True:
            now = len((await self._registry.present(record, source, fresh=True)).partitions)
            if now >= partitions:
                return GrownInput(topic=source.topic, partitions=now, added=now - before)
            if self._clock.now_ms() > deadline:
                raise Retryable(f"topic {source.topic}: brokers do not report {partitions} yet")
            await asyncio.sleep(POLL_S)


def _refuse(topic: str, before: int, wanted: int, most: int, *, confirmed: bool) -> None:
    if wanted < before:
        hint = "Kafka removes none; make a new topic, and read it by a stage under a new name"
        raise UserError([Problem(message=f"topic {topic} has {before} partitions", hint=hint)])
    if wanted > most:
        message = f"topic {topic} may have {most} partitions at most here"
        hint = "the operator sets WAYBILL_INGRESS_PARTITIONS_MAX"
        raise UserError([Problem(message=message, hint=hint)])
    if not confirmed and wanted > before:
        hint = "confirm it with --yes (over HTTP `yes=true`)"
        raise UserError([Problem(message=f"topic {topic}: {KEYS_MOVE}", hint=hint)])
