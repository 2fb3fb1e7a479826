"""Merged tokens: what is said of one must follow from what is said of its tokens."""

from typing import Final

from sim.world import World
from waybill_ingress.core.token_coverage import merge_parts
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.errors import TokenRefused
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.outcome import Outcome

MERGED_MAX: Final = 3
PRECEDENCE: Final = (
    OutcomeKind.LOST,
    OutcomeKind.UNKNOWN,
    OutcomeKind.IN_PROGRESS,
    OutcomeKind.DEAD_LETTERED,
    OutcomeKind.COMPLETE,
)


def ask_merged(world: World) -> None:
    """All of them are asked at one moment, so one slot answers for each pipeline."""
    if len(world.issued) < 2:
        return
    chosen = [world.some(world.issued) for _ in range(world.dice.randint(2, MERGED_MAX))]
    parts = merge_parts(world.open(issued) for issued in chosen)
    sealed = world.ingress.seal(parts, tenant=DEFAULT_TENANT)
    each = [world.status.ask(issued.text) for issued in chosen]
    merged = world.status.ask(sealed.token)
    kinds = [_kind(outcome) for outcome in each]
    due = min(kinds, key=PRECEDENCE.index)
    if _kind(merged) != due:
        world.checker.report("I1", f"a token merged of {kinds} is {_kind(merged)}")


def _kind(outcome: Outcome | TokenRefused) -> OutcomeKind:
    return OutcomeKind.UNKNOWN if isinstance(outcome, TokenRefused) else outcome.outcome
