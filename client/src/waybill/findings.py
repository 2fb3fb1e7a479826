"""What Waybill has found in a manifest that is only checked, as values. Never talks to anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill.errors import (
    Invalid,
    NotReady,
    ProblemError,
    UnexpectedAnswer,
    WaitEnded,
    WaybillError,
)
from waybill.fields import Fields, no_json
from waybill.models import Fault, Operation

KINDS: Final[Mapping[str | None, tuple[type[ProblemError], int]]] = {
    "invalid": (Invalid, 422),
    "too_many_checks": (NotReady, 429),
}
"""The errors for problems of a check that did not finish; any other is Waybill's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStage:
    """A stage as it would be.

    `columns` are those of its rows, by sink. There are none if the stage is wrong, or reads what a
    wrong one writes.
    """

    name: str
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that `apply` would change of a pipeline, in one line.

    `effect` is empty if rows and tokens stay as they are, else `writes_again` or `loses`.
    """

    kind: str
    path: str
    message: str
    effect: str = ""

    def __str__(self) -> str:
        return self.message

    @classmethod
    def read(cls, fields: Fields) -> "Change":
        return cls(
            kind=fields.text("kind"),
            path=fields.text("path"),
            message=fields.text("message"),
            effect=fields.text("effect"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The faults of a manifest, and the pipeline that it would make. Without errors `apply` accepts
    it.

    `changes` are those of the pipeline that exists. They are None if there is nothing to compare:
    there is no such pipeline, it is not known now, or the change is refused.
    """

    errors: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    stages: tuple[CheckedStage, ...] = ()
    changes: tuple[Change, ...] | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @property
    def good(self) -> bool:
        return not self.errors

    @classmethod
    def of_refusal(cls, error: Invalid) -> "Findings":
        """Return the findings for a text that is no manifest, so that nothing more is known of
        it."""
        raw = {
            "errors": error.members.get("errors"),
            "warnings": [],
            "graph": None,
            "changes": None,
        }
        return cls(errors=error.errors, raw=raw)

    @classmethod
    def read(cls, fields: Fields) -> "Findings":
        graph = fields.object_or_none("graph")
        return cls(
            errors=tuple(Fault.read(fault) for fault in fields.objects("errors")),
            warnings=fields.texts("warnings"),
            stages=() if graph is None else _stages(graph),
            changes=_changes(fields),
            raw=fields.raw,
        )


def findings_in(operation: Operation) -> Findings:
    """Return what a check has found that was not answered at once.

    Raises an error if the check failed, is still pending, or its result was not kept.
    """
    if operation.failed:
        kind, status = KINDS.get(operation.problem, (ProblemError, 500))
        said = "; ".join(fault.message for fault in operation.errors)
        raise kind(
            status=status,
            type=f"urn:waybill:problem:{operation.problem}",
            title="the check was not made to its end",
            detail=said or None,
            errors=operation.errors,
            members=operation.raw,
        )
    if operation.pending:
        raise WaitEnded(f"the check is not done yet: ask for the operation {operation.id} later")
    if operation.result is None:
        raise WaybillError("what the check has found was not kept: check it again")
    return Findings.read(Fields(operation.result, f"the result of {operation.id}"))


def _changes(fields: Fields) -> tuple[Change, ...] | None:
    """Return the changes, or None; an older Waybill reports none."""
    if fields.raw.get("changes") is None:
        return None
    return tuple(Change.read(change) for change in fields.objects("changes"))


def _stages(graph: Fields) -> tuple[CheckedStage, ...]:
    edges = [(edge.text("from"), edge.text("to")) for edge in graph.objects("edges")]
    return tuple(
        CheckedStage(
            name=_name(node.text("id"), graph),
            inputs=tuple(_name(source, graph) for source, end in edges if end == node.text("id")),
            sinks=tuple(_name(end, graph) for source, end in edges if source == node.text("id")),
            columns=_columns(node),
        )
        for node in graph.objects("nodes")
        if node.text("kind") == "stage"
    )


def _columns(node: Fields) -> Mapping[str, str]:
    columns = node.object_or_none("columns")
    return {} if columns is None else {name: columns.text(name) for name in columns.raw}


def _name(node: str, graph: Fields) -> str:
    """Return the name in a node, as in `stage/enrich`: a stage may have the name of an input."""
    _, _, name = node.partition("/")
    if not name:
        raise UnexpectedAnswer(
            f"{graph.where} has a node {node!r}, which names neither kind nor name"
        )
    return name
