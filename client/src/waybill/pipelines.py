"""What Waybill knows of a pipeline, as values.

The list of pipelines fills the first fields only; asking for one pipeline fills all. Never talks to
anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from waybill.conditions import PipelineCondition, PipelineStuck
from waybill.errors import PhaseNotReached, PhaseOutOfReach, PipelineFailed
from waybill.fields import Fields, no_json


class Rest(NamedTuple):
    """A phase that lasts until somebody acts, if the pipeline is to be `desired`."""

    desired: str
    command: str
    """The command with which it goes on."""
    may_come: frozenset[str] = frozenset()
    """The phases that may come all the same."""


RESTS: Final[Mapping[str, Rest]] = {
    "Stopped": Rest("stopped", "start"),
    "Finished": Rest("running", "start"),
    "Paused": Rest(
        "paused", "resume", frozenset({"Recovering", "Scheduling", "Starting", "Failed"})
    ),
}
UNKNOWN: Final = "Unknown"  # may come in every phase: the runner is silent


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFailure:
    """Why a pipeline is not well, and what to do."""

    domain: str | None
    message: str
    hint: str | None

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @classmethod
    def read(cls, fields: Fields) -> "PipelineFailure":
        return cls(
            domain=fields.text_or_none("domain"),
            message=fields.text("message"),
            hint=fields.text_or_none("hint"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConnector:
    """A file that is fetched into an input. `rows` of it were read, of which `records` were written
    and `dead` were none. `error` says why the last attempt failed, `note` what else is to be known.
    """

    name: str
    url: str
    state: str
    rows: int
    records: int
    dead: int
    bytes: int
    size: int | None
    changed_at: datetime | None
    error: str | None
    note: str | None

    @classmethod
    def read(cls, fields: Fields) -> "PipelineConnector":
        return cls(
            name=fields.text("name"),
            url=fields.text("url"),
            state=fields.text("state"),
            rows=fields.whole("rows"),
            records=fields.whole("records"),
            dead=fields.whole("dead"),
            bytes=fields.whole("bytes"),
            size=fields.whole_or_none("size"),
            changed_at=fields.moment_or_none("changed_at"),
            error=fields.text_or_none("error"),
            note=fields.text_or_none("note"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumn:
    """A column of an input; a record without a value of a `required` one is refused."""

    name: str
    type: str
    required: bool

    @classmethod
    def read(cls, fields: Fields) -> "InputColumn":
        return cls(
            name=fields.text("name"), type=fields.text("type"), required=fields.flag("required")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInput:
    """A topic that the pipeline reads; `bases` has the offset where it started, by partition.

    `ignored_records` had fields that are no columns, and `warnings` says which. `dropped` and
    `warned` have the number of records by rule: those that were left out, and those that were still
    processed. `connectors` are the files that are fetched into it.
    """

    name: str
    topic: str
    topic_id: str | None
    partitions: int | None
    bases: Mapping[int, int]
    format: str | None = None
    columns: tuple[InputColumn, ...] = ()
    ignored_records: int = 0
    warnings: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    warned: Mapping[str, int] = field(default_factory=dict)
    connectors: tuple[PipelineConnector, ...] = ()

    @classmethod
    def read(cls, fields: Fields) -> "PipelineInput":
        bases = fields.object_or_none("bases")
        return cls(
            name=fields.text("name"),
            topic=fields.text("topic"),
            topic_id=fields.text_or_none("topic_id"),
            partitions=fields.whole_or_none("partitions"),
            bases={} if bases is None else {int(key): bases.whole(key) for key in bases.raw},
            format=fields.text_or_none("format"),
            columns=tuple(map(InputColumn.read, fields.objects("columns"))),
            ignored_records=fields.whole_or_none("ignored_records") or 0,
            warnings=fields.texts("warnings"),
            dropped=_counts(fields, "dropped"),
            warned=_counts(fields, "warned"),
            connectors=tuple(map(PipelineConnector.read, fields.objects("connectors"))),
        )


def _counts(fields: Fields, key: str) -> dict[str, int]:
    found = fields.object_or_none(key)
    return {} if found is None else {name: found.whole(name) for name in found.raw}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSink:
    """A sink of a stage; tokens wait for a `terminal` one.

    `blocked_by`, and the text of the sink (`message`), are there while it keeps its stage waiting.
    """

    name: str
    kind: str
    target: str | None
    terminal: bool
    blocked_by: str | None = None
    message: str | None = None

    @classmethod
    def read(cls, fields: Fields) -> "PipelineSink":
        return cls(
            name=fields.text("name"),
            kind=fields.text("kind"),
            target=fields.text_or_none("target"),
            terminal=fields.flag("terminal"),
            blocked_by=fields.text_or_none("blocked_by"),
            message=fields.text_or_none("message"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """One streaming query of the pipeline."""

    name: str
    inputs: tuple[str, ...]
    sinks: tuple[PipelineSink, ...]
    last_batch: Mapping[str, object] | None

    @classmethod
    def read(cls, fields: Fields) -> "PipelineStage":
        return cls(
            name=fields.text("name"),
            inputs=fields.texts("inputs"),
            sinks=tuple(PipelineSink.read(sink) for sink in fields.objects("sinks")),
            last_batch=fields.mapping_or_none("last_batch"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline: what is wanted (`desired`), what is (`phase`), and since when.

    `next_run_at`: when its schedule begins the next run. `parallelism`: its tasks at once.
    """

    name: str
    phase: str
    desired: str | None = None
    uid: str | None = None
    generation: int | None = None
    reason: str | None = None
    since: datetime | None = None
    conditions: tuple[PipelineCondition, ...] = ()
    stuck: PipelineStuck | None = None
    allowed_actions: tuple[str, ...] = ()
    desired_by: str | None = None
    run: int | None = None
    blocked_by: str | None = None
    attempt: int = 0
    next_attempt_at: datetime | None = None
    escalates_at: datetime | None = None
    next_run_at: datetime | None = None
    parallelism: int | None = None
    error: PipelineFailure | None = None
    sql_guard: str | None = None
    inputs: tuple[PipelineInput, ...] = ()
    stages: tuple[PipelineStage, ...] = ()
    manifest: str | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @property
    def failed(self) -> bool:
        return self.phase == "Failed"

    @classmethod
    def read(cls, fields: Fields) -> "Pipeline":
        error, stuck = fields.object_or_none("error"), fields.object_or_none("stuck")
        return cls(
            name=fields.text("name"),
            phase=fields.text("phase"),
            desired=fields.text_or_none("desired"),
            uid=fields.text_or_none("uid"),
            generation=fields.whole_or_none("generation"),
            reason=fields.text_or_none("reason"),
            since=fields.moment_or_none("since"),
            conditions=tuple(map(PipelineCondition.read, fields.objects("conditions"))),
            stuck=None if stuck is None else PipelineStuck.read(stuck),
            allowed_actions=tuple(fields.texts("allowed_actions")),
            desired_by=fields.text_or_none("desired_by"),
            run=fields.whole_or_none("run"),
            blocked_by=fields.text_or_none("blocked_by"),
            attempt=fields.whole_or_none("attempt") or 0,
            next_attempt_at=fields.moment_or_none("next_attempt_at"),
            escalates_at=fields.moment_or_none("escalates_at"),
            next_run_at=fields.moment_or_none("next_run_at"),
            parallelism=fields.whole_or_none("parallelism"),
            error=None if error is None else PipelineFailure.read(error),
            sql_guard=fields.text_or_none("sql_guard"),
            inputs=tuple(PipelineInput.read(item) for item in fields.objects("inputs")),
            stages=tuple(PipelineStage.read(stage) for stage in fields.objects("stages")),
            manifest=fields.text_or_none("manifest"),
            raw=fields.raw,
        )


def is_in(pipeline: Pipeline, phase: str) -> bool:
    """Return True if the pipeline is in the phase; one that is Finished has been Running."""
    return pipeline.phase == phase or (phase, pipeline.phase) == ("Running", "Finished")


def out_of_reach(pipeline: Pipeline, phase: str) -> bool:
    """Return True if the pipeline rests, and gets into the phase only if somebody acts, because no
    schedule does."""
    rest = None if pipeline.next_run_at else RESTS.get(pipeline.phase)
    if rest is None or rest.desired != pipeline.desired or is_in(pipeline, phase):
        return False
    return phase not in rest.may_come and phase != UNKNOWN


def refuse_out_of_reach(pipeline: Pipeline, phase: str) -> None:
    """Raise PhaseOutOfReach if the pipeline rests, and somebody must act."""
    if out_of_reach(pipeline, phase):
        raise PhaseOutOfReach(
            f"pipeline {pipeline.name} is {pipeline.phase}, and not {phase} before somebody acts",
            pipeline=pipeline,
            hint=f"`waybill {RESTS[pipeline.phase].command} {pipeline.name}` lets it go on",
        )


def in_phase(pipeline: Pipeline, phase: str) -> Pipeline:
    """Return the pipeline if it is in the phase; else raise the error that says its phase and
    why."""
    if is_in(pipeline, phase):
        return pipeline
    reason = str(pipeline.error) if pipeline.error else pipeline.reason
    state = f"pipeline {pipeline.name} is {pipeline.phase}" + (f": {reason}" if reason else "")
    if pipeline.failed:
        raise PipelineFailed(state, pipeline=pipeline)
    raise PhaseNotReached(f"{state}; not {phase} yet", pipeline=pipeline)
