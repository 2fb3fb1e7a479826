"""Reads slots and histories that the tracker stores in Redis. Implements `SlotStore`.

Every error of Redis becomes `Retryable`. A slot that cannot be decoded counts as none.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from waybill_shared.contract import slots
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import DeadEntry, Keys, Progress, Slot
from waybill_status.app.ports import DeadReading
from waybill_status.core.outcomes.dead_letters import DeadRun
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, make_reading

logger = logging.getLogger(__name__)

SUBSCRIPTION_POLL_S = 5.0

Text = bytes | None
_Row = tuple[bytes, Text, Text, Text, int | None, Text, Text]
_DeadRow = tuple[bytes, Text, Text, Text, None, Text, list[int], list[bytes]]


class RedisSlots:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._stamp = client.register_script(_script("read_stamp.lua"))
        self._read = client.register_script(_script("read_slot.lua"))
        self._dead = client.register_script(_script("read_dead_letters.lua"))

    async def read(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotReading]:
        rows = await self._run(self._read, list(pipelines))
        return {key: make_reading(_stamp_of(row), _slot_of(key, row)) for key, row in rows.items()}

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotStamp]:
        rows = await self._run(self._stamp, list(pipelines))
        return {key: _stamp_of(row) for key, row in rows.items()}

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        key = self._keys.history(*pipeline, sink)
        with _translate_errors():
            rows = cast(list[bytes], await self._client.zrange(key, -count, -1))
        return [_progress(row) for row in rows]

    async def count(self, pipeline: PipelineKey, sink: str) -> int:
        with _translate_errors():
            return int(await self._client.zcard(self._keys.history(*pipeline, sink)))

    async def at_rank(self, pipeline: PipelineKey, sink: str, rank: int) -> Progress | None:
        key = self._keys.history(*pipeline, sink)
        with _translate_errors():
            rows = cast(list[bytes], await self._client.zrange(key, rank, rank))
        return _progress(rows[0]) if rows else None

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        places = list(dict.fromkeys(run.key for run in runs))
        keys = [self._keys.slot(*pipeline), *(self._keys.dead(*pipeline, *at) for at in places)]
        wanted = [count, *(part for run in runs for part in _scores(run, places.index(run.key)))]
        with _translate_errors():
            row = cast(_DeadRow, await self._dead(keys=keys, args=wanted))
        entries = tuple(dict.fromkeys(_entry(raw) for raw in row[7]))
        counts = dict(zip(places, row[6], strict=True))
        return DeadReading(stamp=_stamp_of(row), counts=counts, entries=entries)

    async def wakes(self) -> AsyncIterator[PipelineKey | None]:
        with _translate_errors():
            async with self._client.pubsub(ignore_subscribe_messages=True) as subscription:
                await subscription.subscribe(self._keys.wake())
                yield None
                while True:
                    message = await subscription.get_message(timeout=SUBSCRIPTION_POLL_S)
                    if message is not None:
                        tenant, _, uid = message["data"].decode().partition("/")
                        yield (tenant, uid)

    async def close(self) -> None:
        await self._client.aclose()

    async def ping(self) -> None:
        with _translate_errors():
            await self._client.ping()

    async def _run(self, script: object, pipelines: list[PipelineKey]) -> dict[PipelineKey, _Row]:
        if not pipelines:
            return {}
        with _translate_errors():
            batch = self._client.pipeline(transaction=False)
            for pipeline in pipelines:
                await script(keys=[self._keys.slot(*pipeline)], client=batch)  # type: ignore[operator]
            rows = cast(list[_Row], await batch.execute())
        return dict(zip(pipelines, rows, strict=True))


def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Retryable(f"redis does not answer: {error or type(error).__name__}") from error


def _scores(run: DeadRun, place: int) -> tuple[int, str, str]:
    """Return the number of the key, and the limits for the ends of entries."""
    return place + 2, f"({run.start}", f"({run.end + run.longest}"


def _stamp_of(row: _Row | _DeadRow) -> SlotStamp:
    server_run_id, run_id, version, at, age_ms, mark = row[:6]
    return SlotStamp(
        server_run_id=server_run_id.decode(),
        run_id=None if run_id is None else run_id.decode(),
        version=int(version or 0),
        at=int(at or 0),
        age_ms=age_ms,
        mark=(mark or b"").decode(),
    )


def _slot_of(pipeline: PipelineKey, row: _Row) -> Slot | None:
    raw = row[6]
    if raw is None:
        return None
    try:
        return slots.slot_from_json(raw)
    except ValidationError as error:
        extra = {"pipeline_uid": pipeline[1], "reason": str(error)}
        logger.error("slot cannot be decoded", extra=extra)
        return None


def _entry(raw: bytes) -> DeadEntry:
    try:
        return slots.dead_from_json(raw)
    except ValidationError as error:
        raise Retryable(f"a dead letter in redis cannot be decoded: {error}") from error


def _progress(raw: bytes) -> Progress:
    try:
        return slots.progress_from_json(raw)
    except ValidationError as error:
        raise Retryable(f"a batch in redis cannot be decoded: {error}") from error
