"""The pipelines of the simulation: their manifests, and how those change.

A stage is named for what it does to each record, see `effects`. An input or a sink is written as
its name, or as `name=place` where its topic or table is not the one that is called after it. A sink
that was called otherwise is `name=place<was`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

SCHEMA = "number BIGINT"


@dataclass(frozen=True, slots=True)
class Stage:
    """Sinks are named for their kind: `t…` writes a topic, `lake…` a table."""

    name: str
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]
    was: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    inputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    partitions: int = 2
    starting: str = "earliest"
    ends: bool = False
    """Whether its runs end by themselves."""
    schedule: Mapping[str, str] | None = None

    def manifest(self, name: str, was: str | None = None) -> str:
        """As JSON, which is YAML: that is read a hundred times as fast."""
        inputs = [
            {
                "name": name_of(each),
                "kafka": {"topic": topic_of_input(each), "partitions": self.partitions},
                "schema": SCHEMA,
                "startingOffsets": self.starting,
            }
            for each in self.inputs
        ]
        stages = [self._stage(stage) for stage in self.stages]
        schedule = {} if self.schedule is None else {"schedule": self.schedule}
        before = {} if was is None else {"was": was}
        head = {"version": 1, "name": name, **before, **schedule}
        return json.dumps({**head, "inputs": inputs, "stages": stages})

    def beside(self, name: str, sources: Sequence[str]) -> "Shape":
        """The same with topics and tables of its own, for a pipeline that reads `sources`."""
        inputs = tuple(
            f"{each}={source}" for each, source in zip(self.inputs, sources, strict=True)
        )
        mine = {sink: f"{sink}={name}.{sink}" for sink in self.sinks()}
        shape = self._each(lambda s: tuple(mine[sink] for sink in s.sinks))
        return replace(shape, inputs=inputs)

    def sinks(self) -> tuple[str, ...]:
        return tuple(sink for stage in self.stages for sink in stage.sinks)

    def read(self) -> set[str]:
        """Names of inputs and sinks that stages read."""
        return {name for stage in self.stages for name in stage.inputs}

    def with_stage(self, stage: Stage) -> "Shape":
        return replace(self, stages=(*self.stages, stage))

    def without(self, stage: str) -> "Shape":
        return replace(self, stages=tuple(s for s in self.stages if s.name != stage))

    def with_sink(self, stage: str, sink: str) -> "Shape":
        return self._each(lambda s: (*s.sinks, sink) if s.name == stage else s.sinks)

    def without_sink(self, sink: str) -> "Shape":
        return self._each(lambda s: tuple(each for each in s.sinks if each != sink))

    def renamed_sink(self, sink: str, new: str) -> "Shape":
        return self._each(lambda s: tuple(new if each == sink else each for each in s.sinks))

    def renamed_stage(self, stage: str, new: str) -> "Shape":
        stages = (replace(s, name=new) if s.name == stage else s for s in self.stages)
        return replace(self, stages=tuple(stages))

    def with_stage_called(self, stage: str, new: str) -> "Shape":
        """The stage goes on under that name."""
        stages = (replace(s, name=new, was=stage) if s.name == stage else s for s in self.stages)
        return replace(self, stages=tuple(stages))

    def with_sink_called(self, sink: str, new: str) -> "Shape":
        """The sink goes on under that name, and is read by it."""
        name = name_of(sink)
        return self.renamed_sink(sink, f"{new}={place_of_sink(sink)}<{name}").reading(name, new)

    def reading(self, name: str, instead: str) -> "Shape":
        """Whoever read `name` reads `instead`."""
        stages = (
            replace(s, inputs=tuple(instead if each == name else each for each in s.inputs))
            for s in self.stages
        )
        return replace(self, stages=tuple(stages))

    def without_input(self, given: str) -> "Shape":
        return replace(self, inputs=tuple(each for each in self.inputs if each != given))

    def with_input(self, given: str) -> "Shape":
        return replace(self, inputs=(*self.inputs, given))

    def _each(self, sinks: Callable[[Stage], tuple[str, ...]]) -> "Shape":
        return replace(self, stages=tuple(replace(s, sinks=sinks(s)) for s in self.stages))

    def _stage(self, stage: Stage) -> dict[str, object]:
        union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in stage.inputs)
        return {
            **({"trigger": {"availableNow": True}} if self.ends else {}),
            "name": stage.name,
            **({} if stage.was is None else {"was": stage.was}),
            "inputs": stage.inputs,
            "steps": [{"name": f"all_{stage.name}", "sql": union}],
            "sinks": [self._sink(each) for each in stage.sinks],
        }

    def _sink(self, given: str) -> dict[str, object]:
        name, place, was = name_of(given), place_of_sink(given), given.partition("<")[2]
        named = {"name": name, **({"was": was} if was else {})}
        if name.startswith("lake"):
            return {**named, "iceberg": {"table": place}}
        return {**named, "kafka": {"topic": place, "partitions": self.partitions}}


def name_of(given: str) -> str:
    return given.partition("=")[0]


def topic_of_input(given: str) -> str:
    name, _, place = given.partition("=")
    return place or f"{name}.in"


def place_of_sink(given: str) -> str:
    name, _, place = given.partition("<")[0].partition("=")
    return place or (f"raw.{name}" if name.startswith("lake") else f"{name}.out")


TIMETABLES = (
    {"every": "1 minute"},
    {"every": "1 minute", "concurrency": "replace"},
    {"cron": "* * * * *"},
    {"cron": "*/1 * * * *", "timezone": "Europe/Berlin", "concurrency": "replace"},
)
"""All have a time in each minute."""
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
