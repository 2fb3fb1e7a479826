"""What is wrong with the triggers of a pipeline that ends by itself.

All its stages have one trigger: one that never ended would keep the others from `Finished`. Only
what ends can have a schedule.
"""

from collections.abc import Iterator

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.document import Path
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.triggers import Once, describe, ends

BOUNDS = {
    "max_offsets_per_trigger": "maxOffsetsPerTrigger",
    "max_bytes_per_trigger": "maxBytesPerTrigger",
}


def find_ending_problems(manifest: Manifest) -> Iterator[tuple[Path, Problem]]:
    """Find stages that do not end as the first one that ends, and bounds of a batch without one."""
    first = next((s for s in manifest.stages if ends(s.effective_trigger)), None)
    if first is None:
        if manifest.schedule is not None:
            message = "a schedule starts runs that end, and the stages of this pipeline never end"
            hint = "write trigger: {availableNow: true} in each stage, or leave out schedule"
            yield ("schedule",), Problem(message=message, hint=hint)
        return
    wanted = first.effective_trigger
    for number, stage in enumerate(manifest.stages):
        path: Path = ("stages", number)
        trigger = stage.effective_trigger
        if trigger != wanted:
            has = describe(trigger) if ends(trigger) else "a trigger that never ends"
            message = (
                f"stage {stage.name!r} has {has}, and {first.name!r} has {describe(wanted)}:"
                " all stages of a pipeline end in one way"
            )
            hint = f"write trigger: {{{describe(wanted)}: true}} in each stage, or in none"
            yield (*path, "trigger"), Problem(message=message, hint=hint)
        elif isinstance(trigger, Once):
            yield from _bounds(path, stage.model_fields_set)


def _bounds(path: Path, given: set[str]) -> Iterator[tuple[Path, Problem]]:
    for field in BOUNDS.keys() & given:
        message = f"{BOUNDS[field]} does not go with once, which reads all in one batch"
        hint = "leave it out, or take trigger: {availableNow: true}"
        yield (*path, BOUNDS[field]), Problem(message=message, hint=hint)
