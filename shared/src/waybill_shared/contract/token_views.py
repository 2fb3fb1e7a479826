"""What is asked of a token: all of its way, a part of it, or on into other pipelines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field, with_config

from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import TokenLevel

NAME_CHARACTERS_MAX: Final = 100
SINKS_MAX: Final = 100
PIPELINES_MAX: Final = 8


def _in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Sort the names and drop duplicates, so that one question has one view."""
    return tuple(sorted(set(names)))


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a pipeline is named twice: data passes through none of them again")
    return names


Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)]
SinkNames = Annotated[tuple[Name, ...], Field(max_length=SINKS_MAX), AfterValidator(_in_order)]
PipelineNames = Annotated[tuple[Name, ...], Field(max_length=PIPELINES_MAX), AfterValidator(_once)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class WantedView:
    """The view of a token, as it is asked for. `sinks`: by name, those that are waited for, also
    such that another stage reads; none: all at the end of the pipeline. Each part of the token must
    wait for one of them. `through`: by name, pipelines that read what the one before them writes,
    the token's own first; then `sinks` are those of the last."""

    level: TokenLevel = TokenLevel.VISIBLE
    sinks: SinkNames = ()
    through: PipelineNames = ()

    def __post_init__(self) -> None:
        if self.through and self.level == TokenLevel.ACCEPTED:
            raise ValueError("what is accepted has come through no pipeline: leave out one of both")


ALL: Final = WantedView()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughSink:
    """A sink, by its key, of the pipeline `uid`, which writes what comes from a root topic on into
    the next pipeline.
    """

    uid: str
    topic_id: str
    sink: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughStep:
    """A pipeline on the way of a token through several pipelines, and what leads there, as they
    were when that was asked. Later changes cannot alter a final outcome.

    `late`: where some sink of it was added later; partition -1 means all partitions.
    """

    pipeline: str
    uid: str
    generation: int
    led_by: tuple[ThroughSink, ...]
    late: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """The view of a token, with the pipelines as they are."""

    level: TokenLevel = TokenLevel.VISIBLE
    sinks: tuple[str, ...] = ()
    through: tuple[ThroughStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    pipeline: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """The view that the token was asked for; no `sinks`: of all at the end of its pipelines, or of
    the last that it was asked `through`, as that was then."""

    level: TokenLevel
    sinks: list[str]
    through: list[ShownStep]


def view_to_show(view: TokenView) -> ShownView:
    steps = [ShownStep(pipeline=step.pipeline, generation=step.generation) for step in view.through]
    return ShownView(level=view.level, sinks=[*view.sinks], through=steps)


WHOLE: Final = TokenView()
