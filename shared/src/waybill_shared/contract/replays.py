"""Dead letters that are replayed, and the answers to requests for that: `waybill.replays`.

Each letter is replayed by one message, and the token has its position. The answer to a request
is in the transaction of its messages.
"""

from dataclasses import dataclass

from waybill_shared.contract.dead_letters import LetterId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPosition:
    """The position of a message in `waybill.replays`, as this incarnation of it."""

    topic_id: str
    partition: int
    offset: int


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

    @property
    def source(self) -> tuple[str, int, int]:
        """Topic id, partition and offset of the record that died."""
        return (self.topic_id, self.partition, self.letter.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedLetter:
    """A letter that was asked for, the sinks that its message names, and where that is."""

    letter: LetterId
    sinks: tuple[str, ...]  # their keys in the slot
    position: ReplayPosition
    generation: int  # of the pipeline then
    at: int


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
