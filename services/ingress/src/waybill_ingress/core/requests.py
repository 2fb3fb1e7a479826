"""Who has an Idempotency-Key: what the log of claims says, read in its order. Pure.

The first claim of a key has it. One more counts only if it names the present one as shut out, or if
the present one is older than what it remembers. So all who read the log agree, whatever their
clocks say and whatever they have forgotten.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from waybill_shared.contract.requests import RequestAnswer, RequestClaim

Place = tuple[int, int]
"""Partition and offset of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldKey:
    """What is known of a key: its claim, and where the answer stands, if there is one."""

    id: str
    request: str
    at: int
    transactional_id: str
    root: str
    begun: str
    place: Place | None = None


class Requests:
    """All keys of some hours, the oldest first."""

    def __init__(self, *, keys_max: int, kept_ms: int) -> None:
        self._keys_max = keys_max
        self._kept_ms = kept_ms
        self._held: OrderedDict[str, HeldKey] = OrderedDict()
        self._early: OrderedDict[str, RequestAnswer | Place] = OrderedDict()
        self._forgotten_at = 0
        """No claim that is older than this is remembered for sure."""

    def __len__(self) -> int:
        return len(self._held)

    def held(self, who: str, now_ms: int) -> HeldKey | None:
        found = self._held.get(who)
        return None if found is None or found.at < self.forgets_before(now_ms) else found

    def forgets_before(self, now_ms: int) -> int:
        """Of a claim that is made now."""
        return max(self._forgotten_at, now_ms - self._kept_ms)

    def take(self, claim: RequestClaim, now_ms: int) -> None:
        held = self._held.get(claim.who)
        if claim.released:
            if held is not None and held.id == claim.id:
                del self._held[claim.who]
            return
        if held is None or held.at < claim.forgets_before or held.id == claim.after:
            self._held.pop(claim.who, None)
            self._held[claim.who] = self._with_answer(claim)
        self._forget(now_ms)

    def answered(self, answer: RequestAnswer, place: Place) -> None:
        """Answers are read from another topic, and may come before their claims."""
        held = self._held.get(answer.who)
        if held is None or held.id != answer.claim:
            self._early[answer.claim] = place if answer.status else answer
            if len(self._early) > self._keys_max:
                self._early.popitem(last=False)
            return
        self._held[answer.who] = _told(held, answer, place)

    def _with_answer(self, claim: RequestClaim) -> HeldKey:
        held = HeldKey(
            id=claim.id,
            request=claim.request,
            at=claim.at,
            transactional_id=claim.transactional_id,
            root=claim.root,
            begun=claim.begun,
        )
        early = self._early.pop(claim.id, None)
        if isinstance(early, RequestAnswer):
            return replace(held, begun=early.operation)
        return replace(held, place=early)

    def _forget(self, now_ms: int) -> None:
        while self._held:
            who, oldest = next(iter(self._held.items()))
            if len(self._held) <= self._keys_max and oldest.at >= now_ms - self._kept_ms:
                return
            del self._held[who]
            self._forgotten_at = max(self._forgotten_at, oldest.at + 1)


def _told(held: HeldKey, answer: RequestAnswer, place: Place) -> HeldKey:
    if answer.status:
        return replace(held, place=place)
    return replace(held, begun=answer.operation)
