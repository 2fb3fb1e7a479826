"""Which dead letters were sent again: the messages of `waybill.replays`, and their sum.

A dead record is named by its offset in its original topic: no other record ever has it.
"""

from dataclasses import dataclass

Source = tuple[str, int, int]
"""Topic id, partition and offset of a record that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRecord:
    """A dead record of `offset`, and its new location in the same topic."""

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
