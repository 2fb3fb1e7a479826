"""Lives of a pipeline's name, and the refusal of a name that no pipeline has."""

from dataclasses import dataclass

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One pipeline of a name; `number` counts those before it."""

    uid: str
    number: int


def renamed(name: str, present: str) -> Refusal:
    """Return the refusal of a name that a pipeline had before."""
    hint = f"use {present!r}; to call it {name!r} again: `waybill rename {present} {name}`"
    detail = f"pipeline {name!r} is called {present!r} now"
    return Refusal(Slug.RENAMED, detail, hint=hint, renamed_to=present)


def no_pipeline(name: str, known: list[str]) -> Refusal:
    hint = hint_of_names(name, known, "known pipelines") or "no pipeline was applied yet"
    return Refusal(
        Slug.PIPELINE_NOT_FOUND, f"there is no pipeline {name!r}", hint=hint, known=known
    )
