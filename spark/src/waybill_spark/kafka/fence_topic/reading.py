"""Reads the newest fences of some keys, of all that were committed before the question.

An open transaction of another driver in the same partition hides what follows it. This waits for it
only if a record of our own keys is hidden, because that may be the newest fence.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
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
Newest = dict[str, bytes | None]


@dataclass(frozen=True, slots=True)
class _Read:
    """The messages of a partition that are known, up to an offset."""

    topic_id: str
    end: int
    newest: Newest


class Fences:
    """The topic as the sinks of one driver read it: each partition once, and then what is new."""

    def __init__(self, admin: KafkaAdmin, prefix: str) -> None:
        self.admin = admin
        self.prefix = prefix
        self.topic = f"{prefix}.fences"
        self._keys: set[str] = set()
        self._read: dict[int, _Read] = {}

    def expect(self, key: str) -> None:
        """Note that this key will be asked for, so that one look at its partition is enough."""
        self._keys.add(key)

    def newest(self, key: str) -> bytes | None:
        """Call it after `init_transactions`: then no transaction of the key itself is open."""
        self._keys.add(key)
        identity = self.admin.identify([self.topic]).get(self.topic)
        if identity is None:
            raise Retryable(f"topic {self.topic}: a broker does not know it")
        number = len(identity.partitions)
        place = (self.topic, partition_of(key, number))
        ends, reader = highest_ends(self.admin, self.topic, [place[1]])
        end = _visible_end(reader, place, key, ends[place[1]])
        known = self._read.get(place[1])
        if known is None or known.topic_id != identity.topic_id or key not in known.newest:
            keys = {each for each in self._keys if partition_of(each, number) == place[1]}
            newest = _newest(reader, place, keys, end)
        else:
            newest = known.newest | _last_of(_read(reader, place, (known.end, end)), known.newest)
        self._read[place[1]] = _Read(identity.topic_id, end, newest)
        return newest[key]


def _newest(admin: KafkaAdmin, place: tuple[str, int], keys: set[str], end: int) -> Newest:
    """Read backwards until all keys are found."""
    found: Newest = {}
    step = FIRST_STEP
    while end > 0 and (missing := keys - found.keys()):
        start = max(end - step, 0)
        found |= _last_of(_read(admin, place, (start, end)), missing)
        end, step = start, step * STEP_GROWTH
    return dict.fromkeys(keys) | found


def _visible_end(admin: KafkaAdmin, place: tuple[str, int], key: str, end: int) -> int:
    """Return an offset below which every fence of the key is committed or aborted.

    `end` was asked for first, so that nothing is missed in between.
    """
    topic, partition = place
    stable = admin.stable_ends(topic, [partition])[partition]
    hidden = None
    for message in _read(admin, place, (stable, end), committed=False):
        if message.key() == key.encode():
            hidden = message
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


def _last_of(messages: Iterable[Message], keys: Iterable[str]) -> Newest:
    """Return the last value of each of these keys that is there."""
    own = {key.encode(): key for key in keys}
    found: Newest = {}
    for message in messages:
        if (key := own.get(message.key() or b"")) is not None:
            found[key] = message.value()
    return found
