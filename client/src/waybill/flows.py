"""How much was written to each pipeline, and how much of it has arrived, as values."""

from dataclasses import dataclass

from waybill.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFlow:
    """An input: `written` since the pipeline started, and `arrived` in all of its last sinks."""

    name: str
    written: int
    arrived: int

    @classmethod
    def read(cls, fields: Fields) -> "InputFlow":
        return cls(
            name=fields.text("name"),
            written=fields.whole("written"),
            arrived=fields.whole("arrived"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFlow:
    """A sink; `behind` counts what of the inputs is still to come there."""

    stage: str
    name: str
    behind: int

    @classmethod
    def read(cls, fields: Fields) -> "SinkFlow":
        return cls(
            stage=fields.text("stage"), name=fields.text("name"), behind=fields.whole("behind")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFlow:
    """A pipeline, counted in offsets; `reason` says why nothing is known of it now."""

    name: str
    reason: str | None
    inputs: tuple[InputFlow, ...]
    sinks: tuple[SinkFlow, ...]
    dead: int

    @property
    def behind(self) -> int:
        return sum(each.written - each.arrived for each in self.inputs)

    @classmethod
    def read(cls, fields: Fields) -> "PipelineFlow":
        return cls(
            name=fields.text("name"),
            reason=fields.text_or_none("reason"),
            inputs=tuple(map(InputFlow.read, fields.objects("inputs"))),
            sinks=tuple(map(SinkFlow.read, fields.objects("sinks"))),
            dead=fields.whole("dead"),
        )


def flows_in(answer: Fields) -> tuple[PipelineFlow, ...]:
    return tuple(map(PipelineFlow.read, answer.objects("items")))
