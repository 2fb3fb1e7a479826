"""Stores slots in Redis. Implements `Store`; every failure of the driver becomes Retryable.

A write is valid only on the very server that it was made on. The script compares the server's run
id with the one in the slot, so a restored dump or a promoted replica counts as lost. An older copy
of a slot on the same server has another mark than the last write. A position belongs to one commits
topic: a slot of another topic is lost, too. The time is from the server's clock, so that readers
with other clocks agree on the age of a slot.

A tracker that finds a slot lost stores its own name there, and may then rebuild the slot. If it was
paused, and meanwhile others wrote the slot and it was lost again, it does not find its name.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import redis

from waybill_shared.contract import slots
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import DeadEntry, Keys
from waybill_shared.contract.vectors import TopicPartition
from waybill_token_tracker.app.announcing import SlotPosition
from waybill_token_tracker.app.ports import SlotWrite, WriteResult

WRITE: Final = Path(__file__).with_name("write_slot.lua").read_text(encoding="utf-8")


class RedisStore:
    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._script = client.register_script(WRITE)

    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        try:
            pipeline = self._client.pipeline(transaction=False)
            for write in writes:
                keys, arguments = self._call(write)
                self._script(keys=keys, args=arguments, client=pipeline)
            return [WriteResult(answer.decode()) for answer in pipeline.execute()]
        except redis.RedisError as error:
            raise Retryable(f"redis: {error}") from error

    def forgot(self, partitions: Iterable[int]) -> bool:
        """Return True if Redis was emptied since the last call, and at the first call.

        `loop` calls it in every round: it is one small read. `confirm` finds slots that an older
        copy of the data lacks.
        """
        fields = [str(partition) for partition in partitions]
        try:
            if not fields or all(self._client.hmget(self._keys.kept(), fields)):
                return False
            self._client.hset(self._keys.kept(), mapping=dict.fromkeys(fields, 1))
        except redis.RedisError as error:
            raise Retryable(f"redis: {error}") from error
        return True

    def position_of(self, tenant: str, pipeline_uid: str) -> SlotPosition | None:
        try:
            asked = self._client.hmget(self._keys.slot(tenant, pipeline_uid), ["position", "slot"])
        except redis.RedisError as error:
            raise Retryable(f"redis: {error}") from error
        position, slot = asked
        if position is None or slot is None:
            return None
        definition = slots.slot_from_json(slot).definition
        return None if definition is None else SlotPosition(int(position), definition.name)

    def reachable(self) -> str | None:
        try:
            self._client.ping()
        except redis.RedisError as error:
            return str(error)
        return None

    def _call(self, write: SlotWrite) -> tuple[list[str], list[str | int]]:
        names = [self._keys.slot(write.tenant, write.pipeline_uid), self._keys.wake()]
        arguments: list[str | int] = [
            write.partition,
            write.position,
            write.at,
            slots.slot_to_json(slots.for_readers(write.slot)) if write.slot is not None else "",
            int(write.rebuilt),
            f"{write.tenant}/{write.pipeline_uid}",
            slots.HISTORY_LENGTH_MAX,
            write.mark,
            write.topic_id,
            write.writer,
        ]
        for sink, batches in _by_sink(write).items():
            names.append(self._keys.history(write.tenant, write.pipeline_uid, sink))
            arguments += [len(names), "history", len(batches), *batches]
        numbers = _numbers(write)
        for place, entries in _by_place(write).items():
            # If these are all that the slot counts, any stored ones are of an earlier slot.
            replace = write.replaces_dead or numbers.get(place) == len(entries)
            names.append(self._keys.dead(write.tenant, write.pipeline_uid, *place))
            arguments += [len(names), "replace" if replace else "more", len(entries)]
            for entry in entries:
                arguments += [entry.end, slots.dead_to_json(entry)]
        return names, arguments


def _by_sink(write: SlotWrite) -> dict[str, list[str]]:
    """Return the batches to add to each history. A rebuilt slot writes all histories again, also
    those that only have to be emptied."""
    found: dict[str, list[str]] = {}
    if write.rebuilt and write.slot is not None:
        found = {sink: [] for sink in sorted(write.slot.sinks)}
    for entry in write.history:
        found.setdefault(entry.sink, []).append(entry.progress)
    return found


def _by_place(write: SlotWrite) -> dict[TopicPartition, list[DeadEntry]]:
    """Return the dead entries of each root partition."""
    found: dict[TopicPartition, list[DeadEntry]] = {}
    for entry in write.dead:
        found.setdefault((entry.topic_id, entry.partition), []).append(entry)
    return found


def _numbers(write: SlotWrite) -> dict[TopicPartition, int]:
    """Return the number of dead entries of each root partition, as the slot counts them."""
    counts = () if write.slot is None else write.slot.dead
    return {(count.topic_id, count.partition): count.entries for count in counts}
