"""What a stage tells of records that it could not process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that went to a dead-letter topic: where it came from, why, and where it lies."""

    topic: str
    topic_id: str
    partition: int
    offset: int
    sink: str | None  # its key in the slot; None: it came to no sink of the stage
    reason: str  # a DeadReason
    rule: str | None
    message: str
    dead_topic: str
    dead_partition: int
    dead_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """What a stage could not process, told before any commit that goes past it."""

    stage: str
    since: int  # the life of the stage
    sequence: int  # 1, 2, 3 …: who has 3 and not 2 does not know all
    letters: tuple[DeadLetter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPositions:
    """Offsets of one partition whose records went to a dead-letter topic."""

    topic_id: str
    partition: int
    offsets: tuple[int, ...]
    sink: str | None = None  # as in DeadLetter
