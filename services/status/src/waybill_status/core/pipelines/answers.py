"""The answers about one pipeline. `details` makes them."""

from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.connector_view import ConnectorDetail
from waybill_shared.contract.graph import PipelineGraph
from waybill_shared.contract.moments import Moment
from waybill_status.core.pipelines.conditions import SHOWN, ConditionDetail
from waybill_status.core.pipelines.stuck import Stuck

ACTOR: Final = "who asked for what is desired"
ALLOWED: Final = "the changes that can be made now; others are refused with `not_allowed_now`"
PARALLELISM: Final = "how many of its tasks run at once; null: as the operator says"
STUCK: Final = "why it processes nothing, or not as usual; null: all is well"
SQL_GUARD: Final = "strict | trusted, which takes any query; by the runner that spoke last"
IGNORED_RECORDS: Final = "that had fields that are no columns, since the driver started"
DROPPED: Final = "by rule, or `malformed`: records that were left out, since the driver started"
WARNED: Final = (
    "by rule: records that broke it and were accepted all the same, since the driver started"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSummary:
    name: str
    uid: str
    generation: int
    desired: str = field(metadata={"description": "running | paused | stopped"})
    phase: str
    reason: str | None
    since: Moment | None
    allowed_actions: tuple[str, ...] = field(metadata={"description": ALLOWED})
    conditions: tuple[ConditionDetail, ...] = field(metadata=SHOWN)
    stuck: Stuck | None = field(metadata={"description": STUCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    domain: str = field(metadata={"description": "user | external | internal"})
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumn:
    name: str
    type: str
    required: bool = field(metadata={"description": "a record without a value is refused"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDetail:
    name: str
    topic: str
    topic_id: str
    partitions: int
    bases: dict[str, int]
    format: str | None = field(metadata={"description": "json | csv | avro | raw"})
    columns: tuple[InputColumn, ...]
    ignored_records: int = field(metadata={"description": IGNORED_RECORDS})
    warnings: tuple[str, ...]
    dropped: dict[str, int] = field(metadata={"description": DROPPED})
    warned: dict[str, int] = field(metadata={"description": WARNED})
    connectors: tuple[ConnectorDetail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDetail:
    name: str
    kind: str
    target: str
    terminal: bool
    blocked_by: str | None = field(metadata={"description": "what it keeps its stage waiting with"})
    message: str | None = field(metadata={"description": "what the sink said"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LastBatch:
    batch: int
    committed_at: Moment
    rows: int
    version: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDetail:
    name: str
    inputs: tuple[str, ...]
    sinks: tuple[SinkDetail, ...]
    last_batch: LastBatch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDetail(PipelineSummary):
    """`next_attempt_at`: when its driver is started again. `escalates_at`: when a stop that goes on
    becomes a stronger one. `next_run_at`: when its schedule begins the next run.
    """

    desired_by: str = field(metadata={"description": ACTOR})
    run: int = field(metadata={"description": "the number of its newest run; 0: it never ran"})
    blocked_by: str | None = field(metadata={"description": "what its driver waits for"})
    attempt: int = field(metadata={"description": "starts that failed in a row"})
    next_attempt_at: Moment | None
    escalates_at: Moment | None
    next_run_at: Moment | None
    parallelism: int | None = field(metadata={"description": PARALLELISM})
    error: Failure | None
    sql_guard: str | None = field(metadata={"description": SQL_GUARD})
    inputs: tuple[InputDetail, ...]
    stages: tuple[StageDetail, ...]
    graph: PipelineGraph
    manifest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationManifest:
    """`generation`: the last with which this manifest was applied, if it is an earlier one."""

    generation: int
    manifest: str
    until: Moment | None = field(metadata={"description": "when another came; null: it is now"})
