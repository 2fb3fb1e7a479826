"""Lives of a pipeline's name, and the refusal of a name that no pipeline has."""

from collections.abc import Sequence
from dataclasses import dataclass

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One pipeline of a name; `number` counts those before it."""

    uid: str
    number: int


def former_name(name: str, present: str) -> Refusal:
    """Return the refusal of a name that a pipeline had before."""
    hint = f"use {present!r}; to call it {name!r} again: `waybill rename {present} {name}`"
    detail = f"pipeline {name!r} is called {present!r} now"
    return Refusal(Slug.RENAMED, detail, hint=hint, renamed_to=present)


def name_in_use(name: str, holder: str, former: Sequence[str]) -> Refusal:
    """Return the refusal of a name for another pipeline than the one that has it: `holder` is what
    that one is called now, `former` are its names before.
    """
    detail, hint = f"there is a pipeline {name!r}", "choose another name, or delete that one first"
    if name in former:
        detail = f"pipeline {holder!r} was called {name!r}, and its tokens still mean it by that"
        hint = f"choose another name: {name!r} is free when {holder!r} is deleted"
    elif name != holder:
        detail = f"{name!r} was reserved for pipeline {holder!r}, which is not called so yet"
        hint = f"`waybill rename {holder} {name}` goes on with it; or choose another name"
    return Refusal(Slug.NAME_IN_USE, detail, hint=hint)


def no_pipeline(name: str, known: list[str]) -> Refusal:
    hint = hint_of_names(name, known, "known pipelines") or "no pipeline was applied yet"
    return Refusal(
        Slug.PIPELINE_NOT_FOUND, f"there is no pipeline {name!r}", hint=hint, known=known
    )
