"""The pipelines of the simulation: their manifests, what stages do, and so what must come out.

A stage is named for what it does to each record: `thin…` drops some, `twin…` makes two of each,
any other passes it on. A row carries the stages it went through, so every row ever made is unique.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from shared.events import InputDefinition, PipelineRecord, SinkDefinition, StageDefinition
from sim.log import Row

KEPT_OF = 3
SCHEMA = "number BIGINT"


@dataclass(frozen=True, slots=True)
class Stage:
    """Sinks are named for their kind: `t…` writes a topic, `lake…` a table."""

    name: str
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    inputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    partitions: int = 2
    starting: str = "earliest"

    def manifest(self) -> str:
        inputs = "".join(
            f"  - {{name: {name}, kafka: {{topic: {name}.in, partitions: {self.partitions}}},"
            f' schema: "{SCHEMA}", startingOffsets: {self.starting}}}\n'
            for name in self.inputs
        )
        stages = "".join(self._stage(stage) for stage in self.stages)
        return f"version: 1\nname: p\ninputs:\n{inputs}stages:\n{stages}"

    def without(self, stage: str) -> "Shape":
        return replace(self, stages=tuple(s for s in self.stages if s.name != stage))

    def without_sink(self, sink: str) -> "Shape":
        stages = (
            replace(stage, sinks=tuple(name for name in stage.sinks if name != sink))
            for stage in self.stages
        )
        return replace(self, stages=tuple(stages))

    def with_sink(self, stage: str, sink: str) -> "Shape":
        stages = (replace(s, sinks=(*s.sinks, sink)) if s.name == stage else s for s in self.stages)
        return replace(self, stages=tuple(stages))

    def sinks(self) -> tuple[str, ...]:
        return tuple(sink for stage in self.stages for sink in stage.sinks)

    def with_stage(self, stage: Stage) -> "Shape":
        return replace(self, stages=(*self.stages, stage))

    def _stage(self, stage: Stage) -> str:
        sinks = ", ".join(self._sink(name) for name in stage.sinks)
        inputs = ", ".join(stage.inputs)
        union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in stage.inputs)
        steps = f'steps: [{{name: all_{stage.name}, sql: "{union}"}}]'
        return f"  - {{name: {stage.name}, inputs: [{inputs}], {steps}, sinks: [{sinks}]}}\n"

    def _sink(self, name: str) -> str:
        if name.startswith("lake"):
            return f"{{name: {name}, iceberg: {{table: raw.{name}}}}}"
        return f"{{name: {name}, kafka: {{topic: {name}.out, partitions: {self.partitions}}}}}"


SHAPES = (
    Shape(("a",), (Stage("copy", ("a",), ("lake",)),)),
    Shape(("a",), (Stage("thin", ("a",), ("lake", "t")),)),
    Shape(("a",), (Stage("thin", ("a",), ("t",)), Stage("load", ("t",), ("lake",)))),
    Shape(
        ("a",),
        (
            Stage("twin", ("a",), ("t1",)),
            Stage("thin", ("t1",), ("t2", "lake1")),
            Stage("load", ("t2",), ("lake2",)),
        ),
    ),
    Shape(
        ("a",),
        (
            Stage("split", ("a",), ("t1",)),
            Stage("thin", ("t1",), ("t2",)),
            Stage("slow", ("t1",), ("t3",)),
            Stage("merge", ("t2", "t3"), ("lake",)),
        ),
    ),
    Shape(("a", "b"), (Stage("join", ("a", "b"), ("lake", "lake2")),)),
    Shape(("a",), (Stage("thin", ("a",), ("t1",)), Stage("merge", ("a", "t1"), ("lake",)))),
    Shape(
        ("a", "b"),
        (
            Stage("copy", ("a",), ("t1",)),
            Stage("left", ("t1", "b"), ("lake1",)),
            Stage("thin", ("t1",), ("t2",)),
            Stage("side", ("a",), ("lake3",)),
        ),
    ),
)


def transform(uid: str, stage: str, row: Row) -> Iterator[Row]:
    if stage.startswith("thin") and row.number % KEPT_OF == 0:
        return
    step = f"{uid[:4]}.{stage}"
    yield Row(row.number, (*row.path, step))
    if stage.startswith("twin"):
        yield Row(row.number, (*row.path, f"{step}'"))


Effects = Mapping[tuple[str, str], frozenset[Row]]
"""By stage and sink, all rows that one record must lead to."""


@lru_cache(maxsize=50_000)
def effects(
    uid: str, stages: tuple[StageDefinition, ...], input_name: str, number: int
) -> dict[tuple[str, str], frozenset[Row]]:
    """Stages are in the order of their data."""
    written: dict[str, frozenset[Row]] = {}
    found: dict[tuple[str, str], frozenset[Row]] = {}
    for stage in stages:
        arriving = [
            row for source in stage.inputs for row in _arriving(source, input_name, number, written)
        ]
        rows = frozenset(out for row in arriving for out in transform(uid, stage.name, row))
        for sink in stage.sinks:
            found[stage.name, sink.name] = rows
            if sink.topic_id is not None:
                written[sink.target] = written.get(sink.target, frozenset()) | rows
    return found


def _arriving(
    source: InputDefinition, input_name: str, number: int, written: Mapping[str, frozenset[Row]]
) -> Iterable[Row]:
    if source.root:
        return [Row(number)] if source.name == input_name else []
    return written.get(source.topic, frozenset())


def required(
    now: PipelineRecord, generation: int, input_name: str
) -> Iterator[tuple[StageDefinition, SinkDefinition]]:
    """The sinks on the way of an input that a token of `generation` waits for.

    Those that are as old as the token, are still there, and have no reader that is as old.
    """
    topics: set[str] = set()
    old = [s for s in now.stages if any(sink.since <= generation for sink in s.sinks)]
    read = {source.topic for stage in old for source in stage.inputs if not source.root}
    for stage in now.stages:
        if any(s.name == input_name if s.root else s.topic in topics for s in stage.inputs):
            topics |= {sink.target for sink in stage.sinks if sink.topic_id is not None}
            for sink in stage.sinks:
                inner = sink.topic_id is not None and sink.target in read
                if not inner and sink.since <= generation:
                    yield stage, sink
