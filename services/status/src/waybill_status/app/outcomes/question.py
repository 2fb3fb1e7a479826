"""A token with waiting requests: judged and described once for all of them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from waybill_shared.contract.slots import Progress
from waybill_shared.contract.token_views import TokenView
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import OutcomeKind
from waybill_shared.process.signal import Signal
from waybill_status.app.outcomes.answering import answer, judge_all
from waybill_status.app.outcomes.feeds import Feed
from waybill_status.app.ports import Replays, SlotStore
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judgements import FINAL, kind_of
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.through import SinkPath
from waybill_status.core.outcomes.views import PipelineKey, View

Asked = tuple[Token, TokenView]
"""Requests with the same value share a question."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Change:
    """An outcome at one version of the slots that it follows from. All readers get the same
    object."""

    outcome: Outcome
    version: str


class SharedQuestion:
    """A question, with the present views of its pipelines. It implements `SlotViews`."""

    def __init__(
        self,
        number: int,
        token: Token,
        claims: Sequence[Claim],
        feeds: Sequence[Feed],
        store: SlotStore,
        *,
        replays: Replays,
    ) -> None:
        self.store = store
        self.replays = replays
        self.number = number
        self.token = token
        self.asked: Asked = (token, claims[0].asked)
        self.feeds = {feed.pipeline: feed for feed in feeds}
        self.waiters = 0
        self.readers = 0
        """How many of the waiters want each change. The others want only the last one."""
        self.listeners: dict[str, Callable[[], None]] = {}
        """Functions by owner, called once, when nothing will change the answer any more."""
        self.change: Change | None = None
        self.unread = False
        """True if batches or dead letters could not be read, so that it must be asked again."""
        self.written: dict[tuple[PipelineKey, SinkPath], tuple[Span, ...]] = {}
        self.changed = Signal()
        self._claims = claims
        self._outdated = False
        self._answering: asyncio.Task[None] | None = None
        self._fault: BaseException | None = None

    @property
    def settled(self) -> bool:
        """True if nothing will change the answer any more."""
        return self._fault is not None or (self.change is not None and self.change.outcome.final)

    def again(self) -> None:
        self.unread = True

    def view(self, pipeline: PipelineKey) -> View:
        return self.feeds[pipeline].view

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]:
        return await self.feeds[pipeline].newest(sink)

    async def after(self, seen: Change | None, timeout_s: float) -> Change | None:
        """Return the answer as soon as it is another one than `seen`; None when the time is over.
        Raises the error with which answering failed."""
        if self.change is seen and self._fault is None:
            await self.changed.wait(timeout_s)
        if self._fault is not None:
            raise self._fault
        return None if self.change is seen else self.change

    def ask(self) -> None:
        """Answer again. A change meanwhile leads to one more answer."""
        self._outdated = not self.settled and all(feed.loaded for feed in self.feeds.values())
        if self._outdated and self._answering is None:
            self._answering = asyncio.create_task(self._answer())
            self._answering.add_done_callback(self._finish_answer)

    def cancel(self) -> None:
        if self._answering is not None:
            self._answering.cancel()

    async def outcome(self) -> Outcome:
        """Return the outcome at this moment."""
        return await answer(self.token, await judge_all(self._claims, self), self)

    async def _answer(self) -> None:
        try:
            while self._outdated:
                self._outdated = False
                await self._answer_once()
        finally:
            self._answering = None  # here, so that a later call starts a new task

    async def _answer_once(self) -> None:
        self.unread = False
        version = "-".join(str(feed.view.version) for feed in self.feeds.values())
        judgements = await judge_all(self._claims, self, self._add_claim)
        kind = kind_of(judgements)
        if not self.readers and kind not in FINAL:
            self.change = None  # nobody would read it, and to describe it takes time and memory
            return
        outcome = await answer(self.token, judgements, self)
        self.unread |= kind != OutcomeKind.UNKNOWN and outcome.outcome == OutcomeKind.UNKNOWN
        if self.change is None or self.change.outcome != outcome:
            self.change = Change(outcome=outcome, version=version)
            self.changed.notify()
            self._notify_listeners()

    def _add_claim(self, claim: Claim) -> None:
        self.feeds[claim.pipeline].await_change(self.number, claim)

    def _finish_answer(self, answering: asyncio.Task[None]) -> None:
        if not answering.cancelled() and (fault := answering.exception()) is not None:
            self._fault = fault
            self.changed.notify()
            self._notify_listeners()

    def _notify_listeners(self) -> None:
        if self.settled:
            listeners, self.listeners = self.listeners, {}
            for tell in listeners.values():
                tell()
