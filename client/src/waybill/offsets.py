"""Where each stage of a pipeline is in the topics that it reads, as values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from waybill.fields import Fields, no_json


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFrontier:
    """The frontier of one sink of a stage in a partition; None: unknown."""

    name: str
    frontier: int | None

    @classmethod
    def read(cls, fields: Fields) -> "SinkFrontier":
        return cls(name=fields.text("name"), frontier=fields.whole_or_none("frontier"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    """A partition: the stage began at `base`, its next batch begins at `position`, and all of its
    sinks have what is below `frontier`. `end` is one past the last record, and `lag` what is still
    to be read. None: unknown. `pending` is where the next run begins, if somebody has set that and
    no run has done it.
    """

    partition: int
    base: int
    position: int | None
    pending: int | None
    frontier: int | None
    end: int | None
    lag: int | None
    sinks: tuple[SinkFrontier, ...]

    @classmethod
    def read(cls, fields: Fields) -> "PartitionOffsets":
        return cls(
            partition=fields.whole("partition"),
            base=fields.whole("base"),
            position=fields.whole_or_none("position"),
            pending=fields.whole_or_none("pending"),
            frontier=fields.whole_or_none("frontier"),
            end=fields.whole_or_none("end"),
            lag=fields.whole_or_none("lag"),
            sinks=tuple(map(SinkFrontier.read, fields.objects("sinks"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOffsets:
    """An input of a stage: a topic, with all of its partitions."""

    name: str
    topic: str
    topic_id: str
    partitions: tuple[PartitionOffsets, ...]

    @classmethod
    def read(cls, fields: Fields) -> "InputOffsets":
        return cls(
            name=fields.text("name"),
            topic=fields.text("topic"),
            topic_id=fields.text("topic_id"),
            partitions=tuple(map(PartitionOffsets.read, fields.objects("partitions"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOffsets:
    """A stage, with all inputs that it reads."""

    name: str
    inputs: tuple[InputOffsets, ...]

    @property
    def lag(self) -> int | None:
        """The number of records that the stage has still to read in all its partitions; None if it
        is unknown of one."""
        return _sum(each.lag for source in self.inputs for each in source.partitions)

    @classmethod
    def read(cls, fields: Fields) -> "StageOffsets":
        inputs = tuple(map(InputOffsets.read, fields.objects("inputs")))
        return cls(name=fields.text("name"), inputs=inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOffsets:
    """A reason why `position` (with `frontier`), or `end`, is unknown: of one topic, or of all if
    `topic` is None.
    """

    what: str
    topic: str | None
    reason: str
    detail: str
    hint: str | None

    @classmethod
    def read(cls, fields: Fields) -> "UnknownOffsets":
        return cls(
            what=fields.text("what"),
            topic=fields.text_or_none("topic"),
            reason=fields.text("reason"),
            detail=fields.text("detail"),
            hint=fields.text_or_none("hint"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOffsets:
    """A pipeline; `unknown` says why numbers are None, and is empty if all is known."""

    name: str
    generation: int
    stages: tuple[StageOffsets, ...]
    unknown: tuple[UnknownOffsets, ...]
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields) -> "PipelineOffsets":
        return cls(
            name=fields.text("name"),
            generation=fields.whole("generation"),
            stages=tuple(map(StageOffsets.read, fields.objects("stages"))),
            unknown=tuple(map(UnknownOffsets.read, fields.objects("unknown"))),
            raw=fields.raw,
        )


def _sum(numbers: Iterator[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
