"""How a dead record looks in a dead-letter topic: as it was, with headers that say why it is there.

The names of Kafka Connect's headers are its own, so that tools for its dead letters read ours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Headers = tuple[tuple[str, bytes | None], ...]

CONNECT: Final = "__connect.errors"
OWN: Final = "waybill"
TOPIC: Final = f"{CONNECT}.topic"
PARTITION: Final = f"{CONNECT}.partition"
OFFSET: Final = f"{CONNECT}.offset"
CONNECTOR: Final = f"{CONNECT}.connector.name"
TASK: Final = f"{CONNECT}.task.id"
STEP: Final = f"{CONNECT}.stage"
CLASS: Final = f"{CONNECT}.class.name"
ERROR: Final = f"{CONNECT}.exception.class.name"
MESSAGE: Final = f"{CONNECT}.exception.message"
PIPELINE: Final = f"{OWN}.pipeline"
UID: Final = f"{OWN}.uid"
TOPIC_ID: Final = f"{OWN}.topic_id"
STAGE: Final = f"{OWN}.stage"
SINK: Final = f"{OWN}.sink"
REASON: Final = f"{OWN}.reason"
RULE: Final = f"{OWN}.rule"
BATCH: Final = f"{OWN}.batch"
AT: Final = f"{OWN}.at"
GENERATION: Final = f"{OWN}.generation"
STAGE_KEY: Final = f"{OWN}.stage_key"

NAMES: Final = (
    TOPIC, PARTITION, OFFSET, CONNECTOR, TASK, STEP, CLASS, ERROR, MESSAGE,
    PIPELINE, UID, TOPIC_ID, STAGE, STAGE_KEY, SINK, REASON, RULE, BATCH, GENERATION, AT,
)  # fmt: skip
"""In the order in which they follow the headers of the record."""
MAY_LACK: Final = frozenset({STAGE_KEY, SINK, RULE, GENERATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterHeaders:
    """The record's own, and what was said of it, by name."""

    own: Headers
    facts: Mapping[str, str]


def with_facts(own: Headers, facts: Mapping[str, str | None]) -> Headers:
    """Return the headers of the record followed by ours.

    `facts` has a value for each of NAMES but those of MAY_LACK; a value of None is left out.
    """
    texts = ((name, facts.get(name) if name in MAY_LACK else facts[name]) for name in NAMES)
    return (*own, *((name, text.encode()) for name, text in texts if text is not None))


def split_headers(headers: Sequence[tuple[str, bytes | None]]) -> LetterHeaders | None:
    """Split headers that `with_facts` made; return None if the last headers are not ours.

    A record that was a dead letter before has such headers among its own: only the last of them
    count.
    """
    facts: dict[str, str] = {}
    left = len(headers)
    for name in reversed(NAMES):
        found, value = headers[left - 1] if left else ("", None)
        if found == name and value is not None:
            facts[name] = value.decode(errors="replace")
            left -= 1
        elif name not in MAY_LACK:
            return None
    return LetterHeaders(own=tuple(headers[:left]), facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterId:
    """Id of a dead letter: its location, and in `source` the offset that the record had in its own
    topic. A dead-letter topic that was deleted and created again has another record at this
    location.
    """

    topic: str
    partition: int
    offset: int
    source: int

    def __str__(self) -> str:
        """Return the id as text."""
        return f"{self.topic}:{self.partition}:{self.offset}:{self.source}"


_ID: Final = re.compile(
    r"([a-zA-Z0-9._-]{1,249}):(0|[1-9]\d{0,9}):(0|[1-9]\d{0,18}):(0|[1-9]\d{0,18})"
)


def place_of(id: str) -> LetterId | None:
    """Parse the text of an id; return None if it is none."""
    found = _ID.fullmatch(id)
    if found is None:
        return None
    topic, *numbers = found.groups()
    partition, offset, source = map(int, numbers)
    return LetterId(topic=topic, partition=partition, offset=offset, source=source)
