"""The newest state of each watch. A thread feeds it from `waybill.watches`."""

from collections.abc import Sequence
from typing import Final

from waybill_shared.contract.token_life import WATCH_LIFE_MS
from waybill_shared.contract.watches import TokenWatch, without_token
from waybill_shared.contract.words import WatchState

ENDED_MAX: Final = 200_000
"""So many that are open no more are remembered, about."""
CHARACTERS_OF_ONE: Final = 4_096
PLACE_CHARACTERS: Final = 64  # that a place in another pipeline counts for
RANKS: Final = {WatchState.OPEN: 0, WatchState.REPORTED: 1, WatchState.CLOSED: 2}


class WatchBook:
    """All that are known here. Fed by a thread, and read by others."""

    def __init__(self, *, with_tokens: bool = True) -> None:
        self._with_tokens = with_tokens
        self._opened: dict[str, TokenWatch] = {}
        self._ended: dict[str, TokenWatch] = {}
        self._open: dict[tuple[str, str], int] = {}
        self._weights: dict[str, int] = {}

    def accept(self, watch: TokenWatch) -> None:
        """Accept a watch, unless a later state of it is known: messages may arrive again, or
        late.
        """
        before = self.find(watch.id)
        if before is not None and RANKS[watch.state] < RANKS[before.state]:
            return
        self._count(watch)
        kept = watch if self._with_tokens else without_token(watch)
        if watch.open:
            self._opened[watch.id] = kept
            return
        self._ended[watch.id] = kept  # before it is removed from where others may look for it
        self._opened.pop(watch.id, None)
        self._forget(watch.at - WATCH_LIFE_MS)

    def get(self, tenant: str, id: str) -> TokenWatch | None:
        """Return the watch of this tenant; None also if it was closed."""
        found = self.find(id)
        return None if found is None or found.tenant != tenant or found.closed else found

    def find(self, id: str) -> TokenWatch | None:
        """Return the watch of any tenant, also a closed one."""
        return self._opened.get(id) or self._ended.get(id)

    def of(self, tenant: str, before: tuple[int, str] | None = None) -> list[TokenWatch]:
        """Return the watches of a tenant, the newest first.

        `before` is the time and the id of the last watch that the caller has already.
        """
        found = [
            each
            for each in self.all()
            if each.tenant == tenant
            and not each.closed
            and (before is None or (each.at, each.id) < before)
        ]
        return sorted(found, key=lambda each: (each.at, each.id), reverse=True)

    def count_open(self, tenant: str, actor: str) -> int:
        """Return the number of open watches of an actor. A long token counts as several."""
        return self._open.get((tenant, actor), 0)

    def all(self) -> Sequence[TokenWatch]:
        return [*{**self._opened, **self._ended}.values()]

    def is_open(self, id: str) -> bool:
        found = self.find(id)
        return found is not None and found.open

    def _count(self, watch: TokenWatch) -> None:
        owner = (watch.tenant, watch.actor)
        places = sum(len(step.led_by) + len(step.late) for step in watch.view.through)
        size = len(watch.token) + sum(map(len, watch.view.sinks)) + PLACE_CHARACTERS * places
        weight = 1 + size // CHARACTERS_OF_ONE if watch.open else 0
        left = self._open.get(owner, 0) + weight - self._weights.pop(watch.id, 0)
        if weight:
            self._weights[watch.id] = weight
        if left:
            self._open[owner] = left
        else:
            self._open.pop(owner, None)

    def _forget(self, before_ms: int) -> None:
        """Forget watches that ended before this time, as the topic does, and those above the
        maximum. Open ones stay.
        """
        while self._ended:
            oldest = next(iter(self._ended.values()))
            if oldest.at >= before_ms and len(self._ended) <= ENDED_MAX:
                return
            del self._ended[oldest.id]
