"""Slots and histories as the tracker keeps them in Redis: fulfils `SlotStore`.

Whatever Redis does wrong becomes `Retryable`. A slot that cannot be decoded counts as none.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, cast

from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import (
    Keys,
    Progress,
    Slot,
    progress_from_json,
    slot_from_json,
)
from waybill_status.core.views import (
    PipelineKey,
    SlotReading,
    Stamp,
    reading_of,
)

logger = logging.getLogger(__name__)

SUBSCRIPTION_POLL_S = 5.0
# The server's id, its clock and the slot must come from one moment of one server.
STAMP_SCRIPT: Final = """
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call('HMGET', KEYS[1], 'run_id', 'version', 'at', 'confirmed_at', 'mark')
local time = redis.call('TIME')
local age = found[4] and (time[1] * 1000 + math.floor(time[2] / 1000) - found[4])
return {run_id, found[1], found[2], found[3], age, found[5]}
"""
READ_SCRIPT: Final = """
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call(
  'HMGET', KEYS[1], 'run_id', 'version', 'at', 'confirmed_at', 'mark', 'slot')
local time = redis.call('TIME')
local age = found[4] and (time[1] * 1000 + math.floor(time[2] / 1000) - found[4])
return {run_id, found[1], found[2], found[3], age, found[5], found[6]}
"""

Text = bytes | None
_Row = tuple[bytes, Text, Text, Text, int | None, Text, Text]


class RedisSlots:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._stamp = client.register_script(STAMP_SCRIPT)
        self._read = client.register_script(READ_SCRIPT)

    async def read(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotReading]:
        rows = await self._run(self._read, list(pipelines))
        return {key: reading_of(_stamp_of(row), _slot_of(key, row)) for key, row in rows.items()}

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, Stamp]:
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


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Retryable(f"redis does not answer: {error or type(error).__name__}") from error


def _stamp_of(row: _Row) -> Stamp:
    server_run_id, run_id, version, at, age_ms, mark = row[:6]
    return Stamp(
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
        return slot_from_json(raw)
    except ValidationError as error:
        extra = {"pipeline_uid": pipeline[1], "reason": str(error)}
        logger.error("slot cannot be decoded", extra=extra)
        return None


def _progress(raw: bytes) -> Progress:
    try:
        return progress_from_json(raw)
    except ValidationError as error:
        raise Retryable(f"a batch in redis cannot be decoded: {error}") from error
