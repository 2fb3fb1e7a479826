"""What a stage reports of records that it could not process."""

from dataclasses import dataclass

from waybill_shared.contract.replays import ReplayPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that was written to a dead-letter topic: its source, the reason, and its location
    there.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    sink: str | None  # its key in the slot; None: it reached no sink of the stage
    reason: str  # a DeadReason
    rule: str | None
    message: str
    dead_topic: str
    dead_partition: int
    dead_offset: int
    replayed: ReplayPosition | None = None  # where it was read, if it died in a replay


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Dead letters of one stage. It reports them before any commit that passes these records."""

    stage: str
    since: int  # the life of the stage
    sequence: int  # 1, 2, 3 …: who has 3 and not 2 does not know all
    letters: tuple[DeadLetter, ...]
    key: str = ""  # of the stage in the slot, if not made of its name


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPositions:
    """Offsets of one partition at which the records went to a dead-letter topic."""

    topic_id: str
    partition: int
    offsets: tuple[int, ...]
    sink: str | None = None  # as in DeadLetter
