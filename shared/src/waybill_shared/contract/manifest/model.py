"""The native manifest: its model, its checks, and errors that name line, column and fix.

Owns what a manifest may say. Never talks to Kafka or Spark: SQL is checked where Spark runs.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.columns import parse_columns
from waybill_shared.contract.manifest.yaml_source import YamlSource
from waybill_shared.contract.suggestions import nearest

NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,62}$"
TOPIC_PATTERN = r"^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,248}$"
TABLE_PATTERN = r"^[a-z][a-z0-9_]{0,127}\.[a-z][a-z0-9_]{0,127}$"  # they become folders
IN_WORDS = {
    NAME_PATTERN: "lower-case letters, digits, - and _, a letter first, at most 63",
    TOPIC_PATTERN: "letters, digits, ., - and _, at most 249",
    TABLE_PATTERN: "namespace.table, each of at most 128 lower-case letters, digits and _, a letter"
    " first",
}
DURATION = re.compile(r"(\d+) ?(millisecond|second|minute)s?")
MS_PER_UNIT = {"millisecond": 1, "second": 1_000, "minute": 60_000}
LAKE_INTERVAL_MS_MIN = 10_000  # each Iceberg batch is a snapshot with files of its own

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Topic = Annotated[str, Field(pattern=TOPIC_PATTERN)]
Partitions = Annotated[int, Field(ge=1, le=1000)]


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True
    )


class KafkaInput(_Strict):
    """An input topic; created with `partitions` when it does not exist."""

    topic: Topic
    partitions: Partitions = 4


class Input(_Strict):
    name: Name
    kafka: KafkaInput
    format: Literal["json"] = "json"
    columns: str = Field(alias="schema", min_length=1, max_length=20_000)
    key: str | None = None
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    on_malformed: Literal["fail"] = "fail"


class Step(_Strict):
    """A view named `name` over the stage's inputs and earlier steps."""

    name: Name
    sql: str = Field(min_length=1, max_length=20_000)


class KafkaSink(_Strict):
    topic: Topic
    key: str | None = None
    format: Literal["json"] = "json"
    partitions: Partitions = 4


class IcebergSink(_Strict):
    catalog: Literal["lakehouse"] = "lakehouse"
    table: Annotated[str, Field(pattern=TABLE_PATTERN)]
    mode: Literal["append"] = "append"


class Sink(_Strict):
    name: Name
    source: Name | None = Field(default=None, alias="from")
    kafka: KafkaSink | None = None
    iceberg: IcebergSink | None = None

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.kafka is None) == (self.iceberg is None):
            raise ValueError("a sink names exactly one of kafka, iceberg")
        return self

    @property
    def kind(self) -> Literal["kafka", "iceberg"]:
        return "kafka" if self.kafka else "iceberg"

    @property
    def target(self) -> str:
        """What a person calls it: the topic or the table."""
        if self.kafka:
            return self.kafka.topic
        assert self.iceberg is not None
        return f"{self.iceberg.catalog}.{self.iceberg.table}"


class Trigger(_Strict):
    processing_time: str

    @property
    def interval_ms(self) -> int:
        found = DURATION.fullmatch(self.processing_time)
        assert found is not None
        return int(found[1]) * MS_PER_UNIT[found[2]]

    @model_validator(mode="after")
    def _is_a_duration(self) -> Self:
        if DURATION.fullmatch(self.processing_time) is None:
            raise ValueError(f"{self.processing_time!r} is not a duration such as `1 second`")
        return self


class Stage(_Strict):
    name: Name
    inputs: tuple[Name, ...] = Field(min_length=1, max_length=16)
    steps: tuple[Step, ...] = Field(default=(), max_length=64)
    sinks: tuple[Sink, ...] = Field(min_length=1, max_length=16)
    trigger: Trigger | None = None
    max_offsets_per_trigger: int = Field(default=50_000, ge=1, le=1_000_000)
    max_bytes_per_trigger: int | None = Field(default=None, ge=1)

    @property
    def interval_ms(self) -> int:
        """Between batches: as asked for, else none, but a gentle one for Iceberg."""
        if self.trigger is not None:
            return self.trigger.interval_ms
        return LAKE_INTERVAL_MS_MIN if any(sink.iceberg for sink in self.sinks) else 0

    def source_of(self, sink: Sink) -> str:
        """The view that `sink` writes: what it names, else the last step, else the only input."""
        if sink.source is not None:
            return sink.source
        return self.steps[-1].name if self.steps else self.inputs[0]


class Manifest(_Strict):
    version: Literal[1]
    name: Name
    state: Literal["running", "stopped"] = "running"
    inputs: tuple[Input, ...] = Field(min_length=1, max_length=64)
    stages: tuple[Stage, ...] = Field(min_length=1, max_length=64)

    def input(self, name: str) -> Input | None:
        return next((i for i in self.inputs if i.name == name), None)

    def sink(self, name: str) -> Sink | None:
        return next((s for stage in self.stages for s in stage.sinks if s.name == name), None)

    def stages_in_order(self) -> tuple[Stage, ...]:
        """Every stage after those whose sinks it reads. The checks have refused cycles."""
        left, done = list(self.stages), list[Stage]()
        while left:
            written = {sink.name for stage in left for sink in stage.sinks}
            ready = [stage for stage in left if not written.intersection(stage.inputs)]
            assert ready, "a cycle passed the checks"
            done += ready
            left = [stage for stage in left if stage not in ready]
        return tuple(done)

    def warnings(self) -> tuple[str, ...]:
        return tuple(
            f"stage {stage.name}: a snapshot every {stage.trigger.processing_time} makes many small"
            " files; 10 seconds or more is kinder to Iceberg"
            for stage in self.stages
            if stage.trigger is not None
            and stage.trigger.interval_ms < LAKE_INTERVAL_MS_MIN
            and any(sink.kind == "iceberg" for sink in stage.sinks)
        )


def parse_manifest(text: str, *, reserved: str | None = None) -> Manifest:
    """The manifest in `text`; UserError with every problem and its place otherwise.

    Topics whose names begin with `reserved` and a dot are Waybill's own.
    """
    source = YamlSource.read(text)
    try:
        manifest = Manifest.model_validate(source.value)
    except ValidationError as error:
        raise UserError(_located(source, error)) from error
    problems = [
        source.place(problem, path) for path, problem in _graph_problems(manifest, reserved)
    ]
    if problems:
        raise UserError(problems)
    return manifest


def place(problems: Sequence[Problem], text: str) -> tuple[Problem, ...]:
    """Problems that know their dotted path in the manifest, with its line and column."""
    source = YamlSource.read(text)
    paths = [
        [int(p) if p.isdigit() else p for p in problem.path.split(".")] for problem in problems
    ]
    return tuple(
        source.place(problem, tuple(path)) if problem.path else problem
        for problem, path in zip(problems, paths, strict=True)
    )


def _located(source: YamlSource, error: ValidationError) -> list[Problem]:
    items = error.errors()
    paths = [tuple(item["loc"]) for item in items]
    problems = []
    for item, path in zip(items, paths, strict=True):
        deeper = any(other[: len(path)] == path for other in paths if len(other) > len(path))
        if item["type"] == "too_short" and deeper:
            continue  # its items were refused for reasons of their own
        message, hint = item["msg"].removeprefix("Value error, "), ""
        if item["type"] == "extra_forbidden":
            message, hint = f"unknown key {path[-1]!r}", _known_keys(path)
        elif item["type"] == "missing":
            message = f"{path[-1]!r} is missing"
        elif item["type"] == "string_pattern_mismatch":
            message = f"{item['input']!r:.80} cannot stand here"
            hint = IN_WORDS.get(item["ctx"]["pattern"], "")
        problems.append(source.place(Problem(message=message, hint=hint), path))
    return problems


def _known_keys(path: tuple[str | int, ...]) -> str:
    """The keys that would have been taken where `path` ends, the likeliest first."""
    if " " in str(path[-1]):
        return "a comma ends a text that stands in { }: put the text in quotes"
    model: type[BaseModel] = Manifest
    by_key: dict[str, type[BaseModel]] = {
        "inputs": Input, "stages": Stage, "steps": Step, "sinks": Sink, "trigger": Trigger,
        "iceberg": IcebergSink,
    }  # fmt: skip
    for part in path[:-1]:
        if part == "kafka":
            model = KafkaInput if model is Input else KafkaSink
        elif isinstance(part, str):
            model = by_key.get(part, model)
    keys = [field.alias or name for name, field in model.model_fields.items()]
    close = nearest(str(path[-1]), keys)
    return f"did you mean {close!r}?" if close else f"known here: {', '.join(keys)}"


Located = tuple[tuple[str | int, ...], Problem]


def _graph_problems(manifest: Manifest, reserved: str | None) -> list[Located]:
    found = [
        *_schema_problems(manifest),
        *_name_problems(manifest),
        *_topic_problems(manifest, reserved),
        *_source_problems(manifest),
    ]
    # With a name that means two things, a cycle may be no more than a consequence.
    return found or _cycle_problems(manifest)


def _schema_problems(manifest: Manifest) -> list[Located]:
    found: list[Located] = []
    for i, source in enumerate(manifest.inputs):
        try:
            names = [column.name for column in parse_columns(source.columns)]
        except UserError as error:
            found += [(("inputs", i, "schema"), problem) for problem in error.problems]
            continue
        if source.key is not None and source.key not in names:
            message, hint = f"key {source.key!r} is not a column", f"columns: {', '.join(names)}"
            found.append((("inputs", i, "key"), Problem(message=message, hint=hint)))
    return found


def _name_problems(manifest: Manifest) -> list[Located]:
    """Inputs and sinks share one space of names, because a stage may read both."""
    found: list[Located] = []
    seen: set[str] = set()
    stages: set[str] = set()

    def claim(name: str, taken: set[str], path: tuple[str | int, ...]) -> None:
        if name in taken:
            found.append((path, Problem(message=f"the name {name!r} is taken", path="")))
        taken.add(name)

    for i, source in enumerate(manifest.inputs):
        claim(source.name, seen, ("inputs", i, "name"))
    for s, stage in enumerate(manifest.stages):
        claim(stage.name, stages, ("stages", s, "name"))
        for k, sink in enumerate(stage.sinks):
            claim(sink.name, seen, ("stages", s, "sinks", k, "name"))
        views: set[str] = set()
        for i, name in enumerate(stage.inputs):
            claim(name, views, ("stages", s, "inputs", i))
        for t, step in enumerate(stage.steps):
            claim(step.name, views, ("stages", s, "steps", t, "name"))
    return found


def _topic_problems(manifest: Manifest, reserved: str | None) -> list[Located]:
    """A topic is one input or one sink's: else how far it has been written would have no answer."""
    found: list[Located] = []
    owner: dict[str, str] = {}

    def claim(topic: str, user: str, path: tuple[str | int, ...]) -> None:
        for start, whose in (("__", "Kafka"), (f"{reserved}.", "Waybill")):
            if topic.startswith(start):
                message = f"topic {topic!r} is one of {whose}'s own"
                hint = f"take a name that does not begin with {start}"
                found.append((path, Problem(message=message, hint=hint)))
        if topic in owner:
            message = f"topic {topic!r} is already that of {owner[topic]}"
            found.append((path, Problem(message=message, hint="give each its own topic")))
        owner.setdefault(topic, user)

    for i, source in enumerate(manifest.inputs):
        claim(source.kafka.topic, f"input {source.name!r}", ("inputs", i, "kafka", "topic"))
    for s, stage in enumerate(manifest.stages):
        for k, sink in enumerate(stage.sinks):
            if sink.kafka is not None:
                path = ("stages", s, "sinks", k, "kafka", "topic")
                claim(sink.kafka.topic, f"sink {sink.name!r}", path)
    return found


def _source_problems(manifest: Manifest) -> list[Located]:
    found: list[Located] = []
    readable = [i.name for i in manifest.inputs]
    readable += [k.name for stage in manifest.stages for k in stage.sinks if k.kafka]
    for s, stage in enumerate(manifest.stages):
        for i, name in enumerate(stage.inputs):
            if name not in readable:
                problem = Problem(
                    message=f"stage {stage.name!r} reads {name!r}: no input, no Kafka sink",
                    hint=f"known: {', '.join(readable)}",
                )
                found.append((("stages", s, "inputs", i), problem))
        views = [*stage.inputs, *(step.name for step in stage.steps)]
        for k, sink in enumerate(stage.sinks):
            path = ("stages", s, "sinks", k)
            if sink.source is not None and sink.source not in views:
                hint = f"known in this stage: {', '.join(views)}"
                problem = Problem(message=f"no view is called {sink.source!r}", hint=hint)
                found.append(((*path, "from"), problem))
            if sink.source is None and not stage.steps and len(stage.inputs) > 1:
                problem = Problem(
                    message=f"sink {sink.name!r} must say `from`: the stage has several inputs"
                )
                found.append((path, problem))
    return found


def _cycle_problems(manifest: Manifest) -> list[Located]:
    """A stage may not read what comes after it."""
    writer = {sink.name: stage.name for stage in manifest.stages for sink in stage.sinks}
    before = {s.name: {writer[n] for n in s.inputs if n in writer} for s in manifest.stages}
    for _ in manifest.stages:
        for name, direct in before.items():
            before[name] = direct.union(*(before[other] for other in direct))
    return [
        (("stages", s), Problem(message=f"stage {stage.name!r} reads what it writes, in a cycle"))
        for s, stage in enumerate(manifest.stages)
        if stage.name in before[stage.name]
    ]
