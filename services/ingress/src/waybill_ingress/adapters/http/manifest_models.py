"""Requests and answers about manifests, as types."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from waybill_ingress.adapters.http.models import MANIFEST, StrictRequest
from waybill_shared.contract.manifest.fields import Name
from waybill_shared.http.operations import PlacedError

FINDINGS: dict[str, Any] = {
    "errors": [
        {
            "message": "no view is called `ordrs`",
            "line": 9,
            "column": 67,
            "path": "stages.1.steps.0.sql",
            "hint": "did you mean 'orders'? views here: orders",
        }
    ],
    "warnings": [],
    "graph": {
        "nodes": [
            {"id": "input/orders", "kind": "input"},
            {"id": "stage/copy", "kind": "stage", "columns": {"copied": "`order_id` bigint"}},
            {"id": "sink/copied", "kind": "sink"},
            {"id": "stage/enrich", "kind": "stage"},
            {"id": "sink/lake", "kind": "sink"},
        ],
        "edges": [
            {"from": "input/orders", "to": "stage/copy"},
            {"from": "stage/copy", "to": "sink/copied"},
            {"from": "input/orders", "to": "stage/enrich"},
            {"from": "stage/enrich", "to": "sink/lake"},
        ],
    },
    "changes": [
        {
            "kind": "add_sink",
            "path": "stages.copy.sinks.copied",
            "message": "+ sink copied of stage copy: kafka orders.copied, gets what is written from"
            " now on; nothing older",
            "effect": "",
        }
    ],
}


class ValidateRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"manifest": MANIFEST}})

    manifest: str | dict[str, Any] = Field(
        description="YAML or JSON as a text, or the same as an object: of that no error has a line"
    )
    allow_shared: bool = Field(
        default=False,
        description="check it as `apply` with `allow_shared`: a topic or table that another"
        " pipeline writes is a warning, no error",
    )


class ProposeRequest(StrictRequest):
    model_config = ConfigDict(json_schema_extra={"example": {"topic": "orders.in"}})

    topic: str


class ProposalAnswer(BaseModel):
    model_config = ConfigDict(
        serialize_by_alias=True,
        json_schema_extra={
            "example": {
                "topic": "orders.in",
                "records": 100,
                "schema": "order_id BIGINT, customer STRING, placed_at TIMESTAMP, coupon STRING",
                "notes": ["coupon: STRING, for no record has a value of it"],
            }
        },
    )

    topic: str
    records: int = Field(description="how many the columns are derived from, at most 100")
    columns: str = Field(alias="schema", description="as the `schema` of an input")
    notes: list[str] = Field(description="what a person should look at")


class ConvertRequest(StrictRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "shop",
                "sql": "CREATE TABLE price (part BIGINT NOT NULL, price DECIMAL(10,2));",
            }
        }
    )

    name: Name = Field(description="of the pipeline")
    sql: str


class ConversionAnswer(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"example": {"manifest": "version: 1\nname: shop\ninputs: …"}}
    )

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
        description="what is added, removed or changed: change_state | change_text |"
        " change_dead_letter | add_input | remove_input | rename_input | change_input | add_stage |"
        " remove_stage | change_stage | add_sink | remove_sink | change_sink |"
        " change_columns | change_table"
    )
    path: str = Field(description="by names, as in stages.load.sinks.lake; empty: the whole")
    message: str = Field(description="one line for people")
    effect: str = Field(
        description="empty: rows and tokens are as before | writes_again: rows that were written |"
        " loses: tokens of what was not processed end lost"
    )


class FindingsAnswer(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": FINDINGS})

    errors: list[PlacedError] = Field(description="none: `apply` would accept it")
    warnings: list[str]
    graph: CheckedGraph | None
    changes: list[ChangeAnswer] | None = Field(
        description="what `apply` would change of the pipeline that exists; null where there is"
        " nothing to compare: no such pipeline is known, the change is refused, or the answer"
        " would be too long"
    )
