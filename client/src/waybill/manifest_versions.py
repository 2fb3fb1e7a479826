"""The manifests that a pipeline has had, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from waybill.errors import WaybillError
from waybill.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestVersion:
    """A manifest of a pipeline.

    `generation`: for an earlier manifest, the last one that it was applied as. `until`: when the
    next manifest replaced it; None: it is applied now.
    """

    generation: int
    text: str
    until: datetime | None

    @classmethod
    def read(cls, fields: Fields) -> "ManifestVersion":
        return cls(
            generation=fields.whole("generation"),
            text=fields.text("manifest"),
            until=fields.moment_or_none("until"),
        )


def versions_in(answer: Fields) -> tuple[ManifestVersion, ...]:
    return tuple(map(ManifestVersion.read, answer.objects("items")))


def earlier_of(
    name: str, versions: Iterable[ManifestVersion], generation: int | None = None
) -> ManifestVersion:
    """Return the manifest that the pipeline had before the present one, or that of a generation.

    Raise WaybillError if it is not kept, or is the present one.
    """
    known = sorted(versions, key=lambda each: each.generation)
    if generation is None and len(known) == 1:
        raise WaybillError(f"{name} had no other manifest yet: there is nothing to go back to")
    found = known[-2] if generation is None else version_of(known, generation)
    if found.until is None:
        raise WaybillError(f"{name} has the manifest of generation {generation} already")
    return found


def version_of(versions: Iterable[ManifestVersion], generation: int) -> ManifestVersion:
    """Return the manifest that this generation ran with; raise WaybillError if it is not kept.

    A restart on topics that were created again is a new generation with the same manifest.
    """
    known = sorted(versions, key=lambda each: each.generation)
    found = next((each for each in known if each.generation >= generation), None)
    if found is None or generation < known[0].generation:
        there = ", ".join(str(each.generation) for each in known)
        raise WaybillError(f"no manifest of generation {generation} is kept; there are: {there}")
    return found
