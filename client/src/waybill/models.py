"""The answers about records, tokens being made, and operations, as values.

Each top-level answer keeps its JSON in `raw`, for a caller that needs a field that this version
does not name. Never talks to anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, Self, TypeVar

from waybill.fields import Fields, no_json
from waybill.pipelines import PipelineConnector

Handle = TypeVar("Handle", bound=str)
StartFrom = str
"""`earliest`, `latest`, a time with its zone, or offsets: `orders.in[0]=120,orders.in[1]=80`."""
"""Where to start in a topic."""
StopMode = Literal["drain", "checkpoint", "force", "graceful", "immediate"]
"""`graceful` is another name of `drain`, and `immediate` of `force`."""
RestartMode = Literal["safe", "force"]
RestartState = Literal["resume", "fresh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that was not accepted; `index` counts from 0 in what was sent."""

    index: int
    reason: str

    def __str__(self) -> str:
        return f"record {self.index}: {self.reason}"

    @classmethod
    def read(cls, fields: Fields) -> "Rejected":
        return cls(index=fields.whole("index"), reason=fields.text("reason"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptOf(Generic[Handle]):
    """The result of one `send`; `token` is for exactly the records that were accepted."""

    token: Handle
    accepted: int
    rejected: tuple[Rejected, ...]
    request_id: str | None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, hold: Callable[[str], Handle]) -> Self:
        return cls(
            token=hold(fields.text("token")),
            accepted=fields.whole("accepted"),
            rejected=tuple(Rejected.read(row) for row in fields.objects("rejected")),
            request_id=fields.text_or_none("request_id"),
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position of one record in Kafka, as its delivery report names it."""

    topic: str
    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of records in one partition, `end` exclusive."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokenOf(Generic[Handle]):
    """A token for positions, for all that an input has now, or for what a connector has written.

    In the last case `connector` says how far it is.
    """

    token: Handle
    pipeline: str
    issued_at: datetime | None
    request_id: str | None
    connector: PipelineConnector | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, hold: Callable[[str], Handle]) -> Self:
        connector = fields.object_or_none("connector")
        return cls(
            token=hold(fields.text("token")),
            pipeline=fields.text("pipeline"),
            issued_at=fields.moment_or_none("issued_at"),
            request_id=fields.text_or_none("request_id"),
            connector=None if connector is None else PipelineConnector.read(connector),
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedOf(Generic[Handle]):
    """The result of a replay of dead letters; `token` is for exactly these.

    `replayed` of them are replayed now, `already` were before. `sinks`: those that get a record,
    each after its stage.
    """

    token: Handle
    replayed: int
    already: int
    sinks: tuple[str, ...]
    request_id: str | None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, hold: Callable[[str], Handle]) -> Self:
        return cls(
            token=hold(fields.text("token")),
            replayed=fields.whole("replayed"),
            already=fields.whole("already"),
            sinks=tuple(fields.texts("sinks")),
            request_id=fields.text_or_none("request_id"),
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRecord:
    """A record that a tracked producer did not deliver to a position that is known."""

    topic: str
    partition: int | None
    key: bytes | str | None
    value: bytes | str | None = field(repr=False)
    reason: str

    def __str__(self) -> str:
        key = "" if self.key is None else f" with key {self.key!r}"
        return f"a record for {self.topic}{key}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with a manifest, with its location if that is known."""

    message: str
    line: int | None
    column: int | None
    path: str | None
    hint: str | None

    def __str__(self) -> str:
        """Return its location, what is wrong, and what to do, in one line."""
        line = f"line {self.line}" if self.line else None
        column = f"column {self.column}" if self.column else None
        place = ", ".join(filter(None, (line, column, self.path)))
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.message}{hint}" if place else f"{self.message}{hint}"

    @classmethod
    def read(cls, fields: Fields) -> "Fault":
        return cls(
            message=fields.text("message"),
            line=fields.whole_or_none("line"),
            column=fields.whole_or_none("column"),
            path=fields.text_or_none("path"),
            hint=fields.text_or_none("hint"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A change that takes time: apply, start, stop, restart, delete.

    `problem` says why it failed, in a word of docs/problems.md.
    """

    id: str
    pipeline: str
    action: str
    state: str
    pipeline_uid: str | None = None
    generation: int | None = None
    actor: str | None = None
    at: datetime | None = None
    problem: str | None = None
    errors: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    result: Mapping[str, object] | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @property
    def pending(self) -> bool:
        return self.state == "pending"

    @property
    def failed(self) -> bool:
        return self.state == "failed"

    @classmethod
    def read_answer(cls, fields: Fields) -> "Operation":
        """Read the answer to the change itself: the operation is done, or pending."""
        if "operation" not in fields.raw:
            return cls.read(fields)
        return cls(
            id=fields.text("operation"),
            pipeline=fields.text("pipeline"),
            action=fields.text("action"),
            state="pending",
            raw=fields.raw,
        )

    @classmethod
    def read(cls, fields: Fields) -> "Operation":
        return cls(
            id=fields.text("id"),
            pipeline=fields.text("pipeline"),
            action=fields.text("action"),
            state=fields.text("state"),
            pipeline_uid=fields.text_or_none("pipeline_uid"),
            generation=fields.whole_or_none("generation"),
            actor=fields.text_or_none("actor"),
            at=fields.moment_or_none("at"),
            problem=fields.text_or_none("problem"),
            errors=tuple(Fault.read(fault) for fault in fields.objects("errors")),
            warnings=fields.texts("warnings"),
            result=fields.mapping_or_none("result"),
            raw=fields.raw,
        )
