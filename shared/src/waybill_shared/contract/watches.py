"""Watches: who wants to be told when a token is final. They are the messages of `waybill.watches`,
where the newest of an id counts."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from waybill_shared.contract.moments import Moment
from waybill_shared.contract.words import WatchEnd, WatchState

LIFE_MS: Final = 31 * 24 * 3600 * 1000
"""As long as its topic keeps one: a day longer than a token lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWatch:
    """`token` is sealed, as it was given, and empty when the watch is open no more. `actor`: whose
    API key made it. `ended_as`, `event_id`: what was told, and as which event."""

    id: str
    tenant: str
    actor: str
    token: str
    at: int
    expires_at: int
    state: WatchState
    labels: dict[str, str]
    told_at: int | None = None
    event_id: str | None = None
    ended_as: WatchEnd | None = None

    @property
    def open(self) -> bool:
        return self.state == WatchState.OPEN


class WatchBook:
    """All that are known here, the oldest first. Fed by a thread, and read by others."""

    def __init__(self, *, with_tokens: bool = True) -> None:
        self._with_tokens = with_tokens
        self._known: dict[str, TokenWatch] = {}
        self._open: dict[tuple[str, str], int] = {}

    def accept(self, watch: TokenWatch) -> None:
        before = self._known.get(watch.id)
        if before is not None and before.state == WatchState.CLOSED:
            return  # what was told at the same moment brings it not back
        self._count(before, -1)
        self._count(watch, 1)
        self._known[watch.id] = watch if self._with_tokens else _without_token(watch)
        self._forget(watch.at - LIFE_MS)

    def get(self, tenant: str, id: str) -> TokenWatch | None:
        """None, too, if it was closed."""
        found = self._known.get(id)
        gone = found is None or found.tenant != tenant or found.state == WatchState.CLOSED
        return None if gone else found

    def of(self, tenant: str) -> list[TokenWatch]:
        """The newest first."""
        known = [*self._known.values()]
        return [each for each in reversed(known) if self.get(tenant, each.id) is not None]

    def count_open(self, tenant: str, actor: str) -> int:
        return self._open.get((tenant, actor), 0)

    def all_open(self) -> Iterator[TokenWatch]:
        return (each for each in [*self._known.values()] if each.open)

    def is_open(self, id: str) -> bool:
        found = self._known.get(id)
        return found is not None and found.open

    def _count(self, watch: TokenWatch | None, change: int) -> None:
        if watch is None or not watch.open:
            return
        whose = (watch.tenant, watch.actor)
        left = self._open.get(whose, 0) + change
        self._open[whose] = left
        if not left:
            del self._open[whose]

    def _forget(self, before_ms: int) -> None:
        """Those that the topic has no more, too."""
        while self._known:
            oldest = next(iter(self._known.values()))
            if oldest.at >= before_ms:
                return
            self._count(oldest, -1)
            del self._known[oldest.id]


def _without_token(watch: TokenWatch) -> TokenWatch:
    return replace(watch, token="")


def closed(watch: TokenWatch) -> TokenWatch:
    return replace(_without_token(watch), state=WatchState.CLOSED)


def told(watch: TokenWatch, ended_as: WatchEnd, event_id: str, now_ms: int) -> TokenWatch:
    return replace(
        _without_token(watch),
        state=WatchState.TOLD,
        told_at=now_ms,
        event_id=event_id,
        ended_as=ended_as,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDetail:
    """As people see it."""

    id: str
    state: WatchState
    labels: dict[str, str]
    created_at: Moment
    expires_at: Moment = field(metadata={"description": "then it is told as `expired`"})
    told_at: Moment | None
    event_id: str | None = field(metadata={"description": "of what was told in `waybill.status`"})
    ended_as: WatchEnd | None


def watch_detail(watch: TokenWatch) -> WatchDetail:
    return WatchDetail(
        id=watch.id,
        state=watch.state,
        labels=watch.labels,
        created_at=watch.at,
        expires_at=watch.expires_at,
        told_at=watch.told_at,
        event_id=watch.event_id,
        ended_as=watch.ended_as,
    )
