"""What was sent again of dead letters: the messages of `waybill.replays`, and what they add up to.

What died is named by its place in the topic that it came from: that never is another record's.
"""

from dataclasses import dataclass

Source = tuple[str, int, int]
"""Topic id, partition and offset of a record that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRecord:
    """A record that died at `offset`, and where it stands in the same topic again."""

    topic: str
    topic_id: str
    partition: int
    offset: int
    new_partition: int
    new_offset: int
    generation: int
    at: int

    @property
    def source(self) -> Source:
        return (self.topic_id, self.partition, self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The answer to a request to send dead letters again; `token` is of exactly `records`.

    It also has those that an earlier request had sent already.
    """

    tenant: str
    pipeline_uid: str
    at: int
    request_id: str
    token: str
    records: tuple[ReplayedRecord, ...]
