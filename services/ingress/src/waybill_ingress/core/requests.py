"""Keeps who owns an Idempotency-Key, by the log of claims in its order. Pure.

The first claim of a key owns it. A later claim counts only if it names the present owner as fenced
(`after`), or if the present one is older than what the later claimant remembers. So all readers of
the log agree, whatever their clocks say and whatever they have forgotten.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

from waybill_shared.contract.requests import NOBODY, RequestAnswer, RequestClaim

AT_ONCE_MAX: Final = 100  # keys that are forgotten for each claim that is accepted
PACKED: Final = Struct("<16s16s16sqIIiq")
NO_PLACE: Final = (-1, -1)
Place = tuple[int, int]
"""Partition and offset of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedKey:
    """The knowledge of a key: its claim, and where its answer is, if there is one."""

    id: str
    request: str
    at: int
    transactional_id: str
    root: str
    operation: str
    place: Place | None = None


class Requests:
    """All keys of some hours, the oldest first."""

    def __init__(self, *, keys_max: int, kept_ms: int) -> None:
        self._keys_max = keys_max
        self._kept_ms = kept_ms
        self._owned: OrderedDict[bytes, bytes] = OrderedDict()
        self._packing = _Packing()
        self._early: OrderedDict[str, RequestAnswer | Place] = OrderedDict()
        self._forgotten_at = 0
        """Claims that are older than this may be forgotten."""

    def owner(self, who: str, now_ms: int) -> OwnedKey | None:
        found = self._of(who)
        return None if found is None or found.at < self.forgets_before(now_ms) else found

    def forgets_before(self, now_ms: int) -> int:
        """Return the time before which claims are forgotten, for a claim that is made now."""
        return max(self._forgotten_at, now_ms - self._kept_ms)

    def take(self, claim: RequestClaim, now_ms: int) -> None:
        owned, who = self._of(claim.who), bytes.fromhex(claim.who)
        if claim.released:
            if owned is not None and owned.id == claim.id:
                del self._owned[who]
            return
        if owned is None or owned.at < claim.forgets_before or owned.id == claim.after:
            self._owned.pop(who, None)
            self._owned[who] = self._packing.pack(self._with_answer(claim, now_ms))
        self._forget(now_ms)

    def note_answer(self, answer: RequestAnswer, place: Place) -> None:
        """Note an answer. It is read from another topic, and may arrive before its claim."""
        owned = self._of(answer.who)
        if owned is None or owned.id != answer.claim:
            self._early[answer.claim] = place if answer.status else answer
            if len(self._early) > self._keys_max:
                self._early.popitem(last=False)
            return
        self._owned[bytes.fromhex(answer.who)] = self._packing.pack(
            _with_place(owned, answer, place)
        )

    def _of(self, who: str) -> OwnedKey | None:
        packed = self._owned.get(bytes.fromhex(who))
        return None if packed is None else self._packing.unpack(packed)

    def _with_answer(self, claim: RequestClaim, now_ms: int) -> OwnedKey:
        owned = OwnedKey(
            id=claim.id,
            request=claim.request,
            at=min(claim.at, now_ms),  # one clock that is ahead must not make others forget
            transactional_id=claim.transactional_id,
            root=claim.root,
            operation=claim.operation,
        )
        early = self._early.pop(claim.id, None)
        if isinstance(early, RequestAnswer):
            return replace(owned, operation=early.operation)
        return replace(owned, place=early)

    def _forget(self, now_ms: int) -> None:
        for _ in range(AT_ONCE_MAX):
            if not self._owned:
                return
            who, packed = next(iter(self._owned.items()))
            oldest = self._packing.unpack(packed)
            if len(self._owned) <= self._keys_max and oldest.at >= now_ms - self._kept_ms:
                return
            del self._owned[who]
            self._forgotten_at = max(self._forgotten_at, oldest.at + 1)


def _with_place(owned: OwnedKey, answer: RequestAnswer, place: Place) -> OwnedKey:
    if answer.status:
        return replace(owned, place=place)
    return replace(owned, operation=answer.operation)


class _Packing:
    """Packs keys, so that a million of them need a third of the memory."""

    def __init__(self) -> None:
        self._texts: list[str] = [NOBODY]
        """Transactional ids, of which there are few, and operations that were started."""
        self._numbers: dict[str, int] = {NOBODY: 0}

    def pack(self, owned: OwnedKey) -> bytes:
        ids = (bytes.fromhex(each) for each in (owned.id, owned.request, owned.root))
        partition, offset = owned.place or NO_PLACE
        texts = self._number(owned.transactional_id), self._number(owned.operation)
        return PACKED.pack(*ids, owned.at, *texts, partition, offset)

    def unpack(self, packed: bytes) -> OwnedKey:
        claim, request, root, at, transaction, operation, *place = PACKED.unpack(packed)
        partition, offset = place
        return OwnedKey(
            id=claim.hex(),
            request=request.hex(),
            at=at,
            transactional_id=self._texts[transaction],
            root=root.hex(),
            operation=self._texts[operation],
            place=None if (partition, offset) == NO_PLACE else (partition, offset),
        )

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number
