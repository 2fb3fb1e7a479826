"""The model of a native manifest. `inputs` owns what an input may say, `sinks` what a sink may."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from waybill_shared.contract.manifest.dead_letter_settings import DeadLetterSettings
from waybill_shared.contract.manifest.fields import Name, Strict
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.contract.manifest.triggers import (
    Interval,
    Once,
    Trigger,
    TriggerSettings,
    ends,
)

SINK_KEYS = ("name", "was", "from")  # in addition to its kind
DEAD_LETTER_SUFFIX = ".dlq"
PARALLELISM_MAX = 10_000  # no cluster has room for more; the operator's limit is lower


class Step(Strict):
    """A view named `name` over the stage's inputs and earlier steps."""

    name: Name
    sql: str = Field(min_length=1, max_length=20_000)


def _validate_settings(value: object, _: object, info: ValidationInfo) -> SinkSettings:
    return KINDS[info.data["kind"]].model.model_validate(value)


class Sink(Strict):
    """In a manifest the name of its kind is the key of its settings."""

    name: Name
    was: Name | None = None
    source: Name | None = Field(default=None, alias="from")
    kind: str
    settings: Annotated[SerializeAsAny[SinkSettings], WrapValidator(_validate_settings)]

    @model_validator(mode="before")
    @classmethod
    def _find_its_kind(cls, raw: object) -> object:
        if not isinstance(raw, dict):
            return raw
        unknown = [key for key in raw if key not in KINDS and key not in SINK_KEYS]
        if unknown:
            errors = [InitErrorDetails(type="extra_forbidden", loc=(k,), input=k) for k in unknown]
            raise ValidationError.from_exception_data(cls.__name__, errors)
        kinds = [key for key in raw if key in KINDS]
        if len(kinds) != 1:
            raise ValueError(f"a sink names exactly one of {', '.join(KINDS)}")
        others = {key: value for key, value in raw.items() if key not in KINDS}
        return {**others, "kind": kinds[0], "settings": raw[kinds[0]]}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        properties = schema["properties"]
        for name in ("kind", "settings"):
            del properties[name]
            schema["required"].remove(name)
        for kind, row in KINDS.items():
            properties[kind] = handler(row.model.__pydantic_core_schema__)
        schema["oneOf"] = [{"required": [kind]} for kind in KINDS]
        return schema


class Stage(Strict):
    name: Name
    was: Name | None = None
    inputs: tuple[Name, ...] = Field(min_length=1, max_length=16)
    steps: tuple[Step, ...] = Field(default=(), max_length=64)
    sinks: tuple[Sink, ...] = Field(min_length=1, max_length=16)
    trigger: TriggerSettings | None = None
    max_offsets_per_trigger: int = Field(default=50_000, ge=1, le=10_000_000)
    max_bytes_per_trigger: int | None = Field(default=None, ge=1)

    @property
    def effective_trigger(self) -> Trigger:
        """The trigger that the manifest says, else an interval that is good for all its sinks."""
        if self.trigger is not None:
            return self.trigger.trigger
        return Interval(max(KINDS[sink.kind].interval_ms for sink in self.sinks))

    @property
    def batch_offsets_max(self) -> int | None:
        """The most offsets in a batch; None: a batch has no bound."""
        return None if self.effective_trigger == Once() else self.max_offsets_per_trigger

    def source_of(self, sink: Sink) -> str:
        """Return the view that `sink` writes: the one that it names, else the last step, else the
        only input.
        """
        if sink.source is not None:
            return sink.source
        return self.steps[-1].name if self.steps else self.inputs[0]


class Manifest(Strict):
    version: Literal[1]
    name: Name
    was: Name | None = None
    title: str | None = Field(default=None, min_length=1, max_length=200)
    description: str | None = Field(default=None, min_length=1, max_length=4_000)
    tags: tuple[Name, ...] = Field(default=(), max_length=32)
    state: Literal["running", "stopped"] = "running"
    schedule: ScheduleSettings | None = None
    parallelism: int | None = Field(default=None, ge=1, le=PARALLELISM_MAX)
    inputs: tuple[Input, ...] = Field(min_length=1, max_length=64)
    stages: tuple[Stage, ...] = Field(min_length=1, max_length=64)
    dead_letter: DeadLetterSettings = DeadLetterSettings()

    @property
    def about(self) -> dict[str, str]:
        """What it says of itself, for people."""
        said = {
            "title": self.title,
            "description": self.description,
            "tags": ", ".join(self.tags) or None,
        }
        return {name: value for name, value in said.items() if value is not None}

    @property
    def ends(self) -> bool:
        """True if the pipeline ends by itself; then all its stages do."""
        return any(ends(stage.effective_trigger) for stage in self.stages)

    def dead_letter_topic(self, topic: str) -> str:
        """Return the topic for records of `topic` that cannot be processed."""
        return self.dead_letter.topic or f"{topic}{DEAD_LETTER_SUFFIX}"

    def dead_letter_topics(self) -> frozenset[str]:
        read = {name for stage in self.stages for name in stage.inputs}
        topics = (topic for name, topic in self.topics().items() if name in read)
        return frozenset(map(self.dead_letter_topic, topics))

    def input(self, name: str) -> Input | None:
        return next((i for i in self.inputs if i.name == name), None)

    def sink(self, name: str) -> Sink | None:
        return next((s for stage in self.stages for s in stage.sinks if s.name == name), None)

    def stages_in_order(self) -> tuple[Stage, ...]:
        """Return the stages in an order in which each follows those that write what it reads. The
        checks have refused cycles.
        """
        left, done = list(self.stages), list[Stage]()
        while left:
            written = {sink.name for stage in left for sink in stage.sinks}
            ready = [stage for stage in left if not written.intersection(stage.inputs)]
            assert ready, "a cycle passed the checks"
            done += ready
            left = [stage for stage in left if stage not in ready]
        return tuple(done)

    def topics(self) -> dict[str, str]:
        """Return the topics of the inputs, and of the sinks that stages may read, by name."""
        fed = {s.name: s.settings.feeds for stage in self.stages for s in stage.sinks}
        return {
            **{i.name: i.kafka.topic for i in self.inputs},
            **{name: topic.topic for name, topic in fed.items() if topic is not None},
        }

    def warnings(self) -> tuple[str, ...]:
        of_inputs = (f"input {each.name}: {why}" for each in self.inputs for why in each.ignored)
        return (*of_inputs, *self._of_short_triggers(), *self._of_sinks())

    def _of_short_triggers(self) -> Iterator[str]:
        for stage in self.stages:
            trigger = stage.effective_trigger
            if stage.trigger is None or not isinstance(trigger, Interval):
                continue
            for kind in dict.fromkeys(sink.kind for sink in stage.sinks):
                if trigger.ms < KINDS[kind].interval_ms:
                    yield (
                        f"stage {stage.name}: a batch every {stage.trigger.processing_time}"
                        f" {KINDS[kind].when_shorter}"
                    )

    def _of_sinks(self) -> Iterator[str]:
        for stage in self.stages:
            for sink in stage.sinks:
                for caution in sink.settings.cautions:
                    yield f"sink {sink.name} of stage {stage.name}: {caution}"
