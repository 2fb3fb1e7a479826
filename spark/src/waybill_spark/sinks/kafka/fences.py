"""Reads the newest fence of one key, of all that were committed before the question.

An open transaction of another driver in the same partition hides what stands behind it. It holds
this up only where something of our own key stands there: that may be the newest fence.
"""

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import Message

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.majority import highest_ends
from waybill_shared.kafka.partitioner import partition_of

FIRST_STEP: Final = 10_000  # offsets; the key of a stage that runs is mostly among the newest
STEP_GROWTH: Final = 8
HIDDEN_WAIT_S: Final = 90.0  # longer than a killed driver's transaction lives
HIDDEN_POLL_S: Final = 0.05


def newest_fence(admin: KafkaAdmin, topic: str, key: str) -> bytes | None:
    """Call it after `init_transactions`: then no transaction of the key itself is open."""
    identity = admin.identify([topic]).get(topic)
    if identity is None:
        raise Retryable(f"topic {topic}: a broker does not know it")
    place = (topic, partition_of(key, len(identity.partitions)))
    ends, reader = highest_ends(admin, topic, [place[1]])
    end = _visible_end(reader, place, key, ends[place[1]])
    step = FIRST_STEP
    while end > 0:
        start = max(end - step, 0)
        found = _last(_read(reader, place, (start, end)), key)
        if found is not None:
            return found.value()
        end, step = start, step * STEP_GROWTH
    return None


def _visible_end(admin: KafkaAdmin, place: tuple[str, int], key: str, end: int) -> int:
    """Below this every fence of the key stands decided; `end` was asked for first, so that nothing
    slips in between."""
    topic, partition = place
    stable = admin.stable_ends(topic, [partition])[partition]
    hidden = _last(_read(admin, place, (stable, end), committed=False), key)
    if hidden is None:
        return stable
    needed = position_of(hidden)[1] + 1
    deadline = time.monotonic() + HIDDEN_WAIT_S
    while stable < needed:
        if time.monotonic() > deadline:
            raise Retryable(
                f"topic {topic}[{partition}]: an open transaction at offset {stable} has hidden"
                f" the fence of {key} for {HIDDEN_WAIT_S:.0f} s"
            )
        time.sleep(HIDDEN_POLL_S)
        stable = admin.stable_ends(topic, [partition])[partition]
    return stable


def _read(
    admin: KafkaAdmin, place: tuple[str, int], wanted: tuple[int, int], *, committed: bool = True
) -> Iterable[Message]:
    topic, partition = place
    return read_ranges(admin.cluster, topic, {partition: wanted}, committed=committed)


def _last(messages: Iterable[Message], key: str) -> Message | None:
    own = key.encode()
    found = None
    for message in messages:
        if message.key() == own:
            found = message
    return found
