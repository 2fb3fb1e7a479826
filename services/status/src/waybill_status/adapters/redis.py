"""Reads slots and histories that the tracker stores in Redis. Implements `SlotStore`.

Every error of Redis becomes `Retryable`. A slot that cannot be decoded counts as none.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

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
# The entries count only with the slot as it is at the same moment.
DEAD_SCRIPT: Final = """
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call('HMGET', KEYS[1], 'run_id', 'version', 'at', 'confirmed_at', 'mark')
local counts, entries, left = {}, {}, tonumber(ARGV[1])
for i = 2, #KEYS do counts[i - 1] = redis.call('ZCARD', KEYS[i]) end
for i = 2, #ARGV, 3 do
  if left > 0 then
    local key = KEYS[tonumber(ARGV[i])]
    local some = redis.call('ZRANGE', key, ARGV[i + 1], ARGV[i + 2], 'BYSCORE', 'LIMIT', 0, left)
    for _, entry in ipairs(some) do entries[#entries + 1] = entry end
    left = left - #some
  end
end
return {run_id, found[1], found[2], found[3], false, found[5], counts, entries}
"""

Text = bytes | None
_Row = tuple[bytes, Text, Text, Text, int | None, Text, Text]
_DeadRow = tuple[bytes, Text, Text, Text, None, Text, list[int], list[bytes]]


class RedisSlots:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._stamp = client.register_script(STAMP_SCRIPT)
        self._read = client.register_script(READ_SCRIPT)
        self._dead = client.register_script(DEAD_SCRIPT)

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
