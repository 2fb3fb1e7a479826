"""Dead letters that are replayed, and the answers to requests for that: `waybill.replays`.

Each letter is replayed by one message, and the token has its position. The answer to a request
is in the transaction of its messages.
"""

from dataclasses import dataclass
from hashlib import sha256

from waybill_shared.contract.dead_letters import LetterId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPosition:
    """The position of a message in `waybill.replays`, as this incarnation of it."""

    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedRecord:
    """A record as a person has changed it. A stage processes it in place of the one that died."""

    key: bytes | None
    value: bytes | None

    @property
    def size(self) -> int:
        """The number of bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    @property
    def digest(self) -> str:
        """SHA-256 of key and value."""
        return sha256(repr((self.key, self.value)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterReplay:
    """A dead letter that its stage is to process again, and the sinks that lack its record."""

    tenant: str
    pipeline_uid: str
    at: int
    stage: str  # its key in the slot
    sinks: tuple[str, ...]  # their keys in the slot
    letter: LetterId
    letter_topic_id: str
    topic: str  # where the record died, at the offset `letter.source`
    topic_id: str
    partition: int
    size: int  # of the record, in bytes
    edited: EditedRecord | None = None  # None: the record as it was when it died

    @property
    def source(self) -> tuple[str, int, int]:
        """Topic id, partition and offset of the record that died."""
        return (self.topic_id, self.partition, self.letter.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedLetter:
    """A letter that was asked for, the sinks that its message names, and where that is."""

    letter: LetterId
    letter_topic_id: str
    sinks: tuple[str, ...]  # their keys in the slot
    position: ReplayPosition
    generation: int  # of the pipeline then
    at: int
    edited: str | None = None  # the digest of its record, if a person has edited it


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The answer to a request to replay dead letters; `token` is of exactly `letters`.

    It also has those that an earlier request had asked for already.
    """

    tenant: str
    pipeline_uid: str
    at: int
    request_id: str
    token: str
    letters: tuple[ReplayedLetter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayMessage:
    """A message of `waybill.replays`: a letter to replay, or the answer to a whole request."""

    body: Replay | LetterReplay


def entrance(topic_id: str, stage: str) -> str:
    """Return the id under which a slot has `waybill.replays` as a root input of one stage alone.
    `stage`: its key.

    A letter enters at one stage. So nobody waits for the replays of another one, unless what
    another one makes of its letters comes here, too.
    """
    return f"{topic_id}/{stage}"
