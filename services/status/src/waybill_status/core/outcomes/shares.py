"""The parts of a token, split by root topic, and what is asked of them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from waybill_shared.contract import vectors
from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import Span, Vector
from waybill_status.core.outcomes.claims import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShare:
    """The offsets of a part in one root topic. The topic id says which input that is, whatever its
    name."""

    generation: int
    topic_id: str
    spans: tuple[Span, ...]
    into: tuple[str, ...]  # of a replay: as in the part


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A share with what a definition says of its input."""

    spans: tuple[Span, ...]
    generation: int
    topic: str
    named: tuple[str, ...]  # sinks that are asked for by their keys, if not all at the end
    bases: Vector  # the farthest start of a stage of that generation; below it is lost
    stages: frozenset[str]
    beyond: frozenset[str] = frozenset()  # of a replay: these sinks, and those after them


def shares_of(part: Part) -> Iterator[PartShare]:
    """Yield the offsets of a part by topic."""
    for topic_id, spans in groupby(sorted(part.spans), key=lambda span: span.topic_id):
        yield PartShare(
            generation=part.generation, topic_id=topic_id, spans=tuple(spans), into=part.into
        )


def names_of(found: Collection[SinkDefinition], claim: Claim) -> frozenset[str]:
    """Return the names under which these sinks are asked for, maybe former ones."""
    if not claim.asked.sinks:
        return frozenset(sink.name for sink in found)
    meant = {name: claim.names_of(name) for name in claim.asked.sinks}
    return frozenset(
        name for name, names in meant.items() if any(is_meant(sink, names) for sink in found)
    )


def find_starts(spans: Iterable[Span]) -> Vector:
    """Return the end of the first record of each partition."""
    begins = vectors.starts(span for span in spans if span.start < span.end)
    return {place: start + 1 for place, start in begins.items()}


def drops_of(stage: StageDefinition, wanted: Wanted) -> frozenset[str]:
    """Return the inputs of the share that this stage reads. A stage that reads other stages has
    none: its batches have other ends than the records that they write."""
    if not all(source.root for source in stage.inputs):
        return frozenset()
    topics = {span.topic_id for span in wanted.spans}
    return frozenset(i.name for i in stage.inputs if topics & i.ids)
