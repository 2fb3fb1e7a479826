"""Decides which pipeline a manifest changes, and whether a name must be reserved for it. Pure.

The holder of a name is the pipeline that is called so, that was called so, or for which the name
was reserved and which is to be called so.
"""

from typing import Final

from waybill_shared.contract.errors import Problem, Refusal, UserError
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import names_of
from waybill_shared.contract.pipelines import former_name, name_in_use

TAKE_OUT: Final = "take `was` out: then it is a new pipeline"


def find_changed(
    name: str, was: str | None, holder: PipelineRecord | None, before: PipelineRecord | None
) -> PipelineRecord | None:
    """Return the pipeline that a manifest with these names changes; None: it makes a new one.

    `holder` is that of `name`, `before` that of `was`. Raise Refusal if the name is that of another
    pipeline, and UserError if `was` does not say which one it was.
    """
    free = holder is None or (before is not None and holder.pipeline_uid == before.pipeline_uid)
    if before is not None and before.name == was and free:
        return before
    if holder is not None and holder.name != name:
        former = name in holder.was
        raise former_name(name, holder.name) if former else _in_use(name, holder)
    if was is None or (holder is not None and was in holder.was):
        return holder
    raise UserError([_wrong_was(name, was, holder, before)])


def must_reserve(record: PipelineRecord, name: str, holder: PipelineRecord | None) -> bool:
    """Return True if the name must be reserved before the pipeline is called so. Raise Refusal if
    it is that of another one.
    """
    if name in names_of(record):
        return False
    if holder is not None and holder.pipeline_uid != record.pipeline_uid:
        raise _in_use(name, holder)
    return holder is None


def reserved_in(record: PipelineRecord | None, name: str) -> int | None:
    """Return the generation for which the name is reserved; None if the pipeline has or had it."""
    return None if record is None or name in names_of(record) else record.generation


def _wrong_was(
    name: str, was: str, holder: PipelineRecord | None, before: PipelineRecord | None
) -> Problem:
    if before is not None and was in before.was:
        hint = f"write `name: {before.name}`; to rename it, write `was: {before.name}`"
        message = f"pipeline {was!r} is called {before.name!r} now"
        return Problem(message=message, path="was", hint=hint)
    if holder is None:
        message = f"no pipeline was ever called {was!r}"
        return Problem(message=message, path="was", hint=TAKE_OUT)
    if before is not None and before.name == was:
        message = f"pipeline {was!r} still exists next to {name!r}: two cannot become one"
        hint = f"delete one of both, or take `was` out: then it changes {name!r} alone"
        return Problem(message=message, path="was", hint=hint)
    message = f"pipeline {name!r} was never called {was!r}"
    return Problem(message=message, path="was", hint="take `was` out")


def _in_use(name: str, holder: PipelineRecord) -> Refusal:
    return name_in_use(name, holder.name, holder.was)
