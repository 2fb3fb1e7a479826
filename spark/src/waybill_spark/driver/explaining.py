"""Explains a failure of a run to a person: what is wrong, and where in the manifest."""

from collections.abc import Iterable
from dataclasses import replace

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest, Sink
from waybill_spark.driver.failures import describe


def at_sink(
    problems: Iterable[Problem], manifest: Manifest, stage: str | None, name: str | None
) -> list[Problem]:
    """Give problems of a sink in a run the path that a check would have given them."""
    for s, each in enumerate(manifest.stages):
        for k, sink in enumerate(each.sinks):
            if (each.name, sink.name) == (stage, name):
                at = f"stages.{s}.sinks"
                return [replace(p, path=path_of(at, k, sink, p)) for p in problems]
    return [*problems]


def explain(
    applied: AppliedManifest, cause: BaseException, stage: str | None
) -> tuple[tuple[Problem, ...], LifecycleError]:
    """Return the problems of a failure, with their places in the manifest, and what it means."""
    if isinstance(cause, UserError):
        problems_there = at_sink(cause.problems, applied.model, stage, cause.sink)
        cause = UserError(applied.place(problems_there))
    problems = tuple(cause.problems) if isinstance(cause, UserError) else ()
    return problems, describe(cause, stage)


def path_of(stage: str, number: int, sink: Sink, problem: Problem) -> str:
    """Return the path of the sink, or of the key of its settings that the problem names."""
    key = f".{sink.kind}.{problem.path}" if problem.path else ""
    return f"{stage}.{number}{key}"
