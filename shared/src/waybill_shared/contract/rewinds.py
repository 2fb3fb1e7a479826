"""A rewind that a person asked for: where a stage begins in its inputs, back or forward."""

from dataclasses import dataclass, field

from waybill_shared.contract.offsets import Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRewind:
    """A rewind of a stage. It is done at the start of a run, once in each sink.

    `number` grows with each rewind of the pipeline. Partitions that `starts` does not name stay
    where they are; a rewind without any was taken back, and keeps its number. If it is `forward`, a
    sink that is beyond its start stays where it is, too.
    """

    stage: str
    since: int  # which life of that name
    number: int
    starts: Offsets = field(hash=False)
    by: str  # the actor
    at: int
    forward: bool = False
