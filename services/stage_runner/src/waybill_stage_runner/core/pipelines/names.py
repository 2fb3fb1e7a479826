"""Decides what a pipeline is called after a change, and which pipeline gets a name. Pure.

A name is reserved before a pipeline is called so: the record of its next life says for which one.
The life that began first counts, as a pipeline or as a name that was reserved.
"""

from collections.abc import Iterator
from dataclasses import replace

from waybill_shared.contract.commands import Apply, PlainChange, Rename
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.former_names import names_after, names_of
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.problems import Slug

EMPTY = AppliedManifest(native="", source="")


def with_name(record: PipelineRecord, name: str) -> PipelineRecord:
    """Return the record under that name, with those before it."""
    return replace(record, name=name, was=names_after(record, name))


def find_wrong_name(manifest: Manifest, before: PipelineRecord | None) -> Iterator[Problem]:
    """Yield why a manifest cannot call its pipeline so."""
    name, was = manifest.name, manifest.was
    if before is None or name == before.name:
        known = () if before is None else before.was
        if was is not None and was not in known:
            message = f"pipeline {name!r} was never called {was!r}"
            yield Problem(message=message, path="was", hint="take `was` out")
    elif was != before.name:
        path = "name" if was is None else "was"
        message = f"pipeline {was or name!r} is called {before.name!r} now"
        hint = f"write `name: {before.name}`; to rename it, keep `name` and write"
        yield Problem(message=message, path=path, hint=f"{hint} `was: {before.name}`")


def make_reservation(
    command: Command, body: Rename, before: PipelineRecord | None, *, offset: int
) -> PipelineRecord:
    """Return the record of a life that is only a name. Raise UserError if a pipeline began it."""
    if before is not None:
        message = f"there is a pipeline {before.name!r}"
        problem = Problem(message=message, hint="choose another name, or delete that one first")
        raise UserError([problem], Slug.NAME_IN_USE)
    return PipelineRecord(
        tenant=command.tenant,
        pipeline_uid=command.pipeline_uid,
        name=command.pipeline,
        generation=0,
        desired="deleted",
        manifest=EMPTY,
        stages=(),
        created_at=command.at,
        updated_at=command.at,
        commanded_at=offset,
        life=command.life,
        closed=True,
        reserved_for=body.reserved_for or "",
        reserved_in=body.reserved_in or 0,
    )


def refuse_unreserved(body: PlainChange | Apply, before: PipelineRecord | None) -> None:
    """Raise UserError for a new name that was reserved for an earlier generation: it may be that of
    another pipeline by now.
    """
    if before is None or not isinstance(body, Apply | Rename):
        return
    if isinstance(body, Rename):
        name, renames = body.name, True
    else:
        name, renames = body.manifest.model.name, body.manifest.model.was == before.name
    if renames and name not in names_of(before) and body.reserved_in != before.generation:
        message = f"{before.name} was changed before it could be called {name!r}"
        raise UserError([Problem(message=message, hint="send it again")], Slug.SUPERSEDED)


def refuse_reserved(command: Command) -> None:
    """Raise UserError: this life of the name was reserved for another pipeline."""
    message = f"another pipeline is about to be called {command.pipeline!r}"
    problem = Problem(message=message, hint="choose another name, or send it again: it says which")
    raise UserError([problem], Slug.NAME_IN_USE)
