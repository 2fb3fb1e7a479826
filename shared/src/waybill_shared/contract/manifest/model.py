"""The model of a native manifest. Owns what a manifest may say, but for sinks: see `sinks`."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.connectors import CONNECTORS_MAX, FileConnector, with_names
from waybill_shared.contract.manifest.fields import Name, Partitions, Strict, Topic
from waybill_shared.contract.manifest.formats import RecordKeys, keys_needed
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.contract.manifest.tables import SqlTable, is_table, parse_table
from waybill_shared.contract.manifest.triggers import (
    MS_PER_UNIT,
    Interval,
    Once,
    Trigger,
    TriggerSettings,
    ends,
)

SINK_KEYS = ("name", "from")  # in addition to its kind
BUDGET = re.compile(r"(\d{1,7}) per (?:([1-9]\d{0,3}) )?(second|minute|hour)s?")
BUDGET_MAX = 10_000  # a batch's dead records are in one message of a journal
PARALLELISM_MAX = 10_000  # no cluster has room for more; the operator's limit is lower
DEAD_LETTER_SUFFIX = ".dlq"


class KafkaInput(Strict):
    """An input topic; created with `partitions` when it does not exist."""

    topic: Topic
    partitions: Partitions = 4


class Expectation(Strict):
    """A rule that each record of an input must keep: `expect` is a SQL predicate over its columns.

    What is null is not kept.
    """

    name: Name
    expect: str = Field(min_length=1, max_length=20_000)
    on_violation: Literal["dead_letter", "drop", "warn", "fail"] = "dead_letter"


class DeadLetterSettings(Strict):
    """Where records go that a stage cannot process; beyond the budget the stage ends instead.

    Without a topic, those of each input go to a topic of its own, see `Manifest.dead_letter_topic`.
    """

    topic: Topic | None = None
    budget: str = "100 per 1 minute"

    @property
    def records(self) -> int:
        return self._parsed[0]

    @property
    def window_ms(self) -> int:
        return self._parsed[1]

    @property
    def _parsed(self) -> tuple[int, int]:
        found = BUDGET.fullmatch(self.budget)
        assert found is not None
        return int(found[1]), int(found[2] or 1) * MS_PER_UNIT[found[3]]

    @field_validator("budget")
    @classmethod
    def _is_a_budget(cls, text: str) -> str:
        found = BUDGET.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a budget, such as `100 per 1 minute`")
        if int(found[1]) > BUDGET_MAX:
            raise ValueError(f"{text!r} is too much: a budget is at most {BUDGET_MAX} records")
        return text


class Deletes(Strict):
    """`column`: a BOOLEAN that is true in a record which says that its row is to be deleted."""

    column: str = Field(min_length=1)


class Input(RecordKeys):
    """A topic that a stage reads. `checks` sees to it that its keys go with its format."""

    model_config = ConfigDict(json_schema_extra={"allOf": [*keys_needed()]})

    name: Name
    kafka: KafkaInput
    key: str | None = None
    deletes: Deletes | None = None
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    on_malformed: Literal["dead_letter", "drop", "fail"] = "dead_letter"
    expectations: tuple[Expectation, ...] = Field(default=(), max_length=64)
    on_unknown_field: Literal["ignore", "refuse"] = "ignore"
    connectors: tuple[FileConnector, ...] = Field(default=(), max_length=CONNECTORS_MAX)
    _ignored: tuple[str, ...] = PrivateAttr(default=())
    """What its table says without effect, and why."""

    @model_validator(mode="before")
    @classmethod
    def _name_connectors(cls, raw: object) -> object:
        if not isinstance(raw, dict) or "connectors" not in raw:
            return raw
        return {**raw, "connectors": with_names(raw["connectors"])}

    @model_validator(mode="wrap")
    @classmethod
    def _read_table(cls, raw: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read the columns, the key and the connectors of an input from its table as SQL. A table
        that cannot be read is kept as it is: the checks report what is wrong with it, and where.
        """
        text = raw.get("schema") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(text, str) or not is_table(text):
            return handler(raw)
        try:
            table = parse_table(text)
        except UserError:
            return handler(raw)
        found = handler({**raw, **_declared_by(table, raw)})
        found._ignored = table.ignored  # noqa: SLF001 - of this class
        return found

    @property
    def ignored(self) -> tuple[str, ...]:
        return self._ignored


def _declared_by(table: SqlTable, raw: Mapping[object, object]) -> dict[str, object]:
    name, key = raw.get("name"), raw.get("key")
    if isinstance(name, str) and table.name.lower() != name.lower():
        raise ValueError(f"the input is called {name}, and its table {table.name}: use one name")
    if key is not None and table.keys and key not in table.keys:
        raise ValueError(
            f"key is {key}, and the PRIMARY KEY {', '.join(table.keys)}: leave out key"
        )
    if table.connectors and raw.get("connectors"):
        raise ValueError("connectors stand in the table and beside it: write them in one place")
    found: dict[str, object] = {"schema": table.columns}
    if table.keys and key is None:
        found["key"] = table.keys[0]
    if table.connectors:
        found["connectors"] = table.connectors
    return found


class Step(Strict):
    """A view named `name` over the stage's inputs and earlier steps."""

    name: Name
    sql: str = Field(min_length=1, max_length=20_000)


def _validate_settings(value: object, _: object, info: ValidationInfo) -> SinkSettings:
    return KINDS[info.data["kind"]].model.model_validate(value)


class Sink(Strict):
    """In a manifest the name of its kind is the key of its settings."""

    name: Name
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
