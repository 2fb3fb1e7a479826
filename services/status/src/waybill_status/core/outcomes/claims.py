"""Claims: what is asked of one pipeline for a token."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    beyond: bool = False
    """True if its pipeline follows the token's own in a `through` request."""


def pipelines_of(claims: Sequence[Claim]) -> list[PipelineKey]:
    """Return the pipelines that an answer depends on."""
    first = claims[0]
    steps = [(first.pipeline[0], step.uid) for step in first.asked.through]
    return [*(claim.pipeline for claim in claims), *steps]


def unknown(claim: Claim, reason: UnknownReason) -> Judgement:
    """Return the judgement `unknown` with its reason."""
    kind = OutcomeKind.UNKNOWN
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=kind, reason=reason)
