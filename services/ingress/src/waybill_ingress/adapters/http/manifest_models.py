"""Requests and answers about manifests, as types."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from waybill_ingress.adapters.http.models import StrictRequest
from waybill_shared.contract.beginnings import FORMS
from waybill_shared.contract.dead_letter_requests import REASON_CHARACTERS_MAX
from waybill_shared.contract.manifest.fields import Name
from waybill_shared.contract.manifest.model import PARALLELISM_MAX
from waybill_shared.http.examples import with_example
from waybill_shared.http.operations import PlacedError

PARTITION_MAX = 2**31 - 1  # of Kafka
OFFSET_MAX = 2**63 - 1


class ValidateRequest(StrictRequest):
    model_config = with_example("ingress/validate_request")

    manifest: str | dict[str, Any] = Field(
        description="YAML or JSON as a text, or the same as an object: of that no error has a line"
    )
    allow_shared: bool = Field(
        default=False,
        description="check it as `apply` with `allow_shared`: a topic or table that another"
        " pipeline writes is a warning, no error",
    )


class RescaleRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"parallelism": 4}})

    parallelism: int = Field(
        ge=1,
        le=PARALLELISM_MAX,
        description="how many of its tasks run at once; the operator says how many are allowed",
    )


class RenameRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"to": "sales"}})

    to: Name = Field(description="what the pipeline is called from now on")


class PutDeadLetterRequest(StrictRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "topic": "orders.in",
                "partition": 0,
                "offset": 4711,
                "reason": "ends the driver: out of memory",
            }
        }
    )

    topic: str = Field(description="that a stage of the pipeline reads")
    partition: int = Field(ge=0, le=PARTITION_MAX)
    offset: int = Field(ge=0, le=OFFSET_MAX)
    reason: str = Field(
        min_length=1,
        max_length=REASON_CHARACTERS_MAX,
        description="for people: the message of the dead letter has it, with who asked",
    )
    stage: Name | None = Field(
        default=None, description="the only stage that is meant; else each that reads the topic"
    )


class GrowRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"partitions": 12}})

    partitions: int = Field(
        ge=1, le=PARTITION_MAX, description="that the topic has then; the operator sets a limit"
    )


class GrowAnswer(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"topic": "orders.in", "partitions": 12, "added": 8}}
    )

    topic: str
    partitions: int = Field(description="that it has now")
    added: int = Field(description="0: it had so many before")


class OffsetsRequest(StrictRequest):
    model_config = ConfigDict(
        json_schema_extra={"example": {"from": "orders.in[0]=120,orders.in[1]=80"}}
    )

    start_from: str = Field(
        alias="from",
        max_length=10_000,
        description=f"where stages begin: {FORMS}; each as `restart` does it",
    )
    stage: str | None = Field(
        default=None,
        description="the only stage that begins there; without it all that read inputs of the"
        " pipeline, or the topics that `from` names",
    )


class ProposeRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"topic": "orders.in"}})

    topic: str


class ProposalAnswer(BaseModel):
    model_config = ConfigDict(**with_example("ingress/proposal"), serialize_by_alias=True)

    topic: str
    records: int = Field(description="how many the columns are derived from, at most 100")
    columns: str = Field(alias="schema", description="as the `schema` of an input")
    notes: list[str] = Field(description="what a person should look at")


class ConvertRequest(StrictRequest):
    model_config = with_example("ingress/convert_request")

    name: Name = Field(description="of the pipeline")
    sql: str


class ConversionAnswer(BaseModel):
    model_config = with_example("ingress/conversion")

    manifest: str = Field(description="YAML, with the SQL as it was written")


class CheckedNode(BaseModel):
    id: str
    kind: str = Field(description="input | stage | sink")
    columns: dict[str, str] | None = Field(
        default=None,
        description="only of a stage that compiled: by sink, the columns of its rows, as the"
        " `schema` of an input has them. Left out where the answer would be too long",
    )


class CheckedEdge(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")


class CheckedGraph(BaseModel):
    nodes: list[CheckedNode]
    edges: list[CheckedEdge]


class ChangeAnswer(BaseModel):
    kind: str = Field(
        description="what is added, removed or changed: rename_pipeline | change_state |"
        " change_schedule | change_parallelism | change_text | change_dead_letter | add_input |"
        " remove_input | rename_input | change_input | add_stage | remove_stage | rename_stage |"
        " change_stage | add_sink | remove_sink | rename_sink | change_sink | change_columns |"
        " change_table"
    )
    path: str = Field(description="by names, as in stages.load.sinks.lake; empty: the whole")
    message: str = Field(description="one line for people")
    effect: str = Field(
        description="empty: rows and tokens are as before | writes_again: rows that were written |"
        " loses: tokens of what was not processed end lost"
    )


class FindingsAnswer(BaseModel):
    model_config = with_example("ingress/findings")

    errors: list[PlacedError] = Field(description="none: `apply` would accept it")
    warnings: list[str]
    graph: CheckedGraph | None
    changes: list[ChangeAnswer] | None = Field(
        description="what `apply` would change of the pipeline that exists; null where there is"
        " nothing to compare: no such pipeline is known, the change is refused, or the answer"
        " would be too long"
    )
