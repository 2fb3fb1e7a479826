"""Claims: what is asked of one pipeline for a token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.views import PipelineKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The parts of a token that belong to one pipeline; none if nothing of it was written there."""

    pipeline: PipelineKey
    name: str
    parts: tuple[Part, ...]
    asked: TokenView = WHOLE
    keys: frozenset[str] = frozenset()
    """Keys of the sinks that are asked for, if these are not all at the end, and not asked for by
    name."""
    names: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """Of sinks that are asked for by name and had another one: all names of each, as the record
    has them. The slot may be older."""
    beyond: bool = False
    """True if its pipeline follows the token's own in a `through` request."""

    @property
    def sink_names(self) -> frozenset[str]:
        """All names of the sinks that are asked for by name."""
        return frozenset(each for name in self.asked.sinks for each in self.names_of(name))

    def names_of(self, asked: str) -> frozenset[str]:
        """Return all names of the sink that is asked for by one of them."""
        return self.names.get(asked, frozenset((asked,)))


def pipelines_of(claims: Sequence[Claim]) -> list[PipelineKey]:
    """Return the pipelines that an answer depends on."""
    first = claims[0]
    steps = [(first.pipeline[0], step.uid) for step in first.asked.through]
    return [*(claim.pipeline for claim in claims), *steps]


def unknown(claim: Claim, reason: UnknownReason) -> Judgement:
    """Return the judgement `unknown` with its reason."""
    kind = OutcomeKind.UNKNOWN
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=kind, reason=reason)
