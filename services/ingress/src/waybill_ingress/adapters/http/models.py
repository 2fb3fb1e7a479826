"""Requests and answers over HTTP, as types: they check requests and document answers."""

from base64 import b64decode
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from waybill_ingress.core.dead_letters import LETTERS_MAX
from waybill_ingress.core.edits import RecordEdit
from waybill_ingress.core.token_coverage import NamedSpan
from waybill_shared.contract.connector_view import ConnectorDetail
from waybill_shared.http.examples import with_example

PARTITIONS_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 2
POSITIONS_MAX = 10_000
CLUSTER_ID_CHARACTERS_MAX = 100


class LogsAnswer(BaseModel):
    pipeline: str
    lines: list[str] = Field(description="oldest first")


Offset = Annotated[int, Field(ge=0, le=OFFSET_MAX)]


class StrictRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PositionBody(StrictRequest):
    """One record by `offset`, as in its delivery report, or a run of them by `start` and `end`."""

    topic: str = Field(min_length=1, max_length=249)
    topic_id: str | None = Field(default=None, max_length=22)
    partition: int = Field(ge=0, le=PARTITIONS_MAX)
    offset: Offset | None = None
    start: Offset | None = None
    end: Offset | None = None

    @model_validator(mode="after")
    def _is_one_or_a_run(self) -> Self:
        single = self.offset is not None and self.start is None and self.end is None
        run = self.offset is None and self.start is not None and self.end is not None
        if not single and not run:
            raise ValueError("a position has either offset, or start and end (exclusive)")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"start {self.start} is not below end {self.end}")
        return self

    def position(self) -> NamedSpan:
        start = self.offset if self.start is None else self.start
        assert start is not None
        return NamedSpan(
            topic=self.topic,
            topic_id=self.topic_id,
            partition=self.partition,
            start=start,
            end=start + 1 if self.end is None else self.end,
        )


class TokenRequest(StrictRequest):
    """The content of an input of a pipeline, positions in what it reads, or other tokens."""

    model_config = with_example("ingress/token_request")

    pipeline: str | None = None
    input: str | None = None
    connector: str | None = Field(default=None, description="of the input")
    positions: list[PositionBody] | None = Field(
        default=None, min_length=1, max_length=POSITIONS_MAX
    )
    cluster_id: str | None = Field(
        default=None,
        max_length=CLUSTER_ID_CHARACTERS_MAX,
        description="of the Kafka that the positions are in; another one than ours is refused",
    )
    merge: list[str] | None = Field(default=None, min_length=1, description="at most 10,000 tokens")

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        origins = [self.input, self.positions, self.merge]
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("a token is asked for by exactly one of input, positions, merge")
        if (self.pipeline is None) == (self.merge is None):
            raise ValueError("pipeline belongs to input and positions, and not to merge")
        if self.connector is not None and self.input is None:
            raise ValueError("connector belongs to input")
        if self.cluster_id is not None and self.positions is None:
            raise ValueError("cluster_id belongs to positions")
        return self


class RejectedRow(BaseModel):
    index: int = Field(description="counts from 0 in what was sent")
    reason: str


class RecordsAnswer(BaseModel):
    model_config = with_example("ingress/records")

    token: str
    accepted: int
    rejected: list[RejectedRow]
    request_id: str


class TokenAnswer(BaseModel):
    model_config = with_example("ingress/token")

    token: str
    pipeline: str | None = Field(description="null for a merged token, which may span several")
    issued_at: str
    request_id: str
    connector: ConnectorDetail | None = Field(
        default=None, description="how far it is; only of a token for a connector"
    )


class AcceptedAnswer(BaseModel):
    model_config = with_example("ingress/accepted")

    operation: str
    pipeline: str
    action: str


class EditBody(StrictRequest):
    """The change of a record: a member that is absent stays as it was, null means none."""

    key: str | None = None
    key_base64: str | None = Field(default=None, description="where it is no UTF-8")
    value: str | None = Field(default=None, description="it must fit the schema of its input")
    value_base64: str | None = Field(default=None, description="where it is no UTF-8")

    @model_validator(mode="after")
    def _changes_something_once(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("an edit changes key or value")
        for name in ("key", "value"):
            if self.model_fields_set >= {name, f"{name}_base64"}:
                raise ValueError(f"{name} is given twice")
        self.edit()
        return self

    def edit(self) -> RecordEdit:
        edit = RecordEdit()
        if self.model_fields_set & {"key", "key_base64"}:
            edit["key"] = _bytes(self.key, self.key_base64)
        if self.model_fields_set & {"value", "value_base64"}:
            edit["value"] = _bytes(self.value, self.value_base64)
        return edit


def _bytes(text: str | None, base64: str | None) -> bytes | None:
    if base64 is not None:
        return b64decode(base64, validate=True)
    return None if text is None else text.encode()


class ReplayRequest(StrictRequest):
    model_config = with_example("ingress/replay_request")

    ids: list[str] = Field(
        min_length=1, description=f"of dead letters, at most {LETTERS_MAX:,}, as a list of them has"
    )
    again: bool = Field(
        default=False, description="`true`: also what was replayed before, one more time"
    )
    yes: bool = Field(
        default=False, description="`true`: also where old rows may take the place of newer ones"
    )
    edited: EditBody | None = Field(
        default=None, description="of the only letter: its record is processed so, not as it was"
    )

    @model_validator(mode="after")
    def _edits_one_letter(self) -> Self:
        if self.edited is not None and len(self.ids) != 1:
            raise ValueError("edited belongs to a single id")
        return self


class ReplayAnswer(BaseModel):
    model_config = with_example("ingress/replay")

    token: str = Field(
        description="for exactly these dead letters; the same for the same ids, as long as none of"
        " them is replayed again"
    )
    replayed: int = Field(description="how many are replayed now")
    already: int = Field(description="how many were replayed before, and are not now")
    sinks: list[str] = Field(description="those that get a record, each after its stage")
    request_id: str


class FelderaTokenAnswer(BaseModel):
    """A token. Its outcome is at `GET /v0/pipelines/{p}/completion_status?token=`, or at
    `GET /v1/tokens/{t}`.
    """

    token: str
