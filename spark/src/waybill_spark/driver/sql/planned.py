"""A stage as people wrote it, joined with what it means in the pipeline that runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.model import Manifest, Sink, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """`definition` may have some of the sinks only, as where the others go."""

    stage: Stage
    definition: StageDefinition
    about: Mapping[str, str]
    """What the manifest says of itself."""

    def sink(self, name: str) -> Sink:
        (found,) = (sink for sink in self.stage.sinks if sink.name == name)
        return found

    def only(self, name: str) -> "PlannedStage":
        """Return the same stage with that sink alone, or with none."""
        sinks = tuple(sink for sink in self.definition.sinks if sink.name == name)
        return replace(self, definition=replace(self.definition, sinks=sinks))


def join(manifest: Manifest, definitions: Iterable[StageDefinition]) -> tuple[PlannedStage, ...]:
    stages = {stage.name: stage for stage in manifest.stages}
    return tuple(
        PlannedStage(stage=stages[each.name], definition=each, about=manifest.about)
        for each in definitions
    )
