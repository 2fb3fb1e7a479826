"""Answers what the outcome of a token is: at once, when it is final, or with every change.

Promise: an outcome other than `unknown` follows from a slot that was written to the very server
that answers.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace

from waybill_shared.contract.asked_views import require_reader, settle, sinks_of
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, Retryable, TokenRefused
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import all_names
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.token_views import WHOLE, TokenView, WantedView
from waybill_shared.contract.tokens import Part, Token, open_token
from waybill_shared.contract.topology import sinks_in
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import UnknownReason
from waybill_shared.process.clock import Clock
from waybill_shared.process.signal import Signal, loop_time_s
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.outcomes.answering import NEWEST, answer, judge_all
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.question import Change, SharedQuestion
from waybill_status.app.outcomes.rewinding import RewindingSinks
from waybill_status.app.ports import News, Owners, Replays, SlotStore, SlotViews
from waybill_status.core.outcomes.claims import Claim, pipelines_of
from waybill_status.core.outcomes.outcome import Outcome, unknown
from waybill_status.core.outcomes.through import SinkPath
from waybill_status.core.outcomes.views import PipelineKey, View, view_of

PING_S = 15.0  # below the idle time-outs of proxies


class Tokens:
    def __init__(
        self,
        owners: Owners,
        news: News,
        *,
        store: SlotStore,
        hub: Hub,
        ring: KeyRing,
        clock: Clock,
        replays: Replays | None = None,
    ) -> None:
        self.directory_changed = Signal()
        self._owners = owners
        self._news = news
        self._store = store
        self._hub = hub
        self._ring = ring
        self._clock = clock
        self._replays = replays or KnownReplays()
        self._rewinding = RewindingSinks(owners, news, store)

    def open(self, tenant: str, text: str) -> Token:
        return open_token(text, self._ring, tenant=tenant, now_ms=self._clock.now_ms())

    async def now(
        self, tokens: Sequence[Token], asked: TokenView = WHOLE
    ) -> list[Outcome | TokenRefused]:
        """Return the outcome of each token, from one reading of each pipeline."""
        claims = await self._claims_of(tokens, asked)
        known = [each for each in claims if isinstance(each, list)]
        slots = await self._snapshot({key for each in known for key in pipelines_of(each)})
        found = [
            each if isinstance(each, TokenRefused) else await self._outcome(token, each, slots)
            for token, each in zip(tokens, claims, strict=True)
        ]
        outcomes = [each for each in found if isinstance(each, Outcome)]
        marked = iter(await self._rewinding.mark(tokens, asked, outcomes, slots))
        return [each if isinstance(each, TokenRefused) else next(marked) for each in found]

    async def wait_for_all(
        self, tokens: Sequence[Token], wait_s: float, asked: TokenView = WHOLE
    ) -> list[Outcome | TokenRefused]:
        """Return the outcomes as soon as all are final, or as they are when the time is over."""
        deadline = loop_time_s() + wait_s
        outcomes = await self.now(tokens, asked)
        for token, outcome in zip(tokens, outcomes, strict=True):
            if isinstance(outcome, Outcome) and not outcome.final and loop_time_s() < deadline:
                with suppress(TokenRefused):
                    await self.wait(token, deadline - loop_time_s(), asked)
        return await self.now(tokens, asked) if wait_s > 0 else outcomes

    async def wait(self, token: Token, wait_s: float, asked: TokenView = WHOLE) -> Outcome:
        """Return the outcome as soon as it is final, or as it is when the time is over."""
        deadline = loop_time_s() + wait_s
        claims = await self._claims_in_time(token, deadline, asked)
        if claims is None:
            return unknown(token, UnknownReason.PIPELINE_NOT_KNOWN_YET)
        async with self._hub.watch(token, claims) as question:
            change = question.change
            while change is None or not _ends(change.outcome, asked):
                left_s = deadline - loop_time_s()
                if left_s <= 0 or self._hub.closing:
                    return await self.mark(question, await question.outcome())
                change = await question.after(change, left_s) or change
            return await self.mark(question, change.outcome)

    async def follow(self, token: Token, asked: TokenView = WHOLE) -> AsyncIterator[Change | None]:
        """Yield the outcome now and after each change, up to a final one; None after a while
        without change."""
        claims = await self._claims_in_time(token, loop_time_s() + PING_S, asked)
        if claims is None:
            yield Change(outcome=unknown(token, UnknownReason.PIPELINE_NOT_KNOWN_YET), version="0")
            return
        async with self._hub.watch(token, claims) as question:
            change: Change | None = None
            shown: Outcome | None = None
            while change is None or not (_ends(change.outcome, asked) or self._hub.closing):
                change = await question.after(change, PING_S) or change
                marked = None if change is None else await self.mark(question, change.outcome)
                same = change is None or marked is None or marked == shown
                shown = marked
                yield None if same else _as_change(change, marked)

    async def mark(self, question: SharedQuestion, outcome: Outcome) -> Outcome:
        """Return the outcome with the sinks that show older rows again."""
        token, asked = question.asked
        (marked,) = await self._rewinding.mark([token], asked, [outcome], question)
        return marked

    async def claims(
        self, token: Token, asked: TokenView = WHOLE
    ) -> list[Claim] | TokenRefused | None:
        """Return which parts of the token are in which pipelines; None while some of these are not
        known here."""
        (claims,) = await self._claims_of([token], asked)
        return claims

    async def settle(
        self, caller: Caller, tokens: Sequence[Token], wanted: WantedView
    ) -> list[TokenView | Refusal]:
        """Resolve what is asked of each token, with the present pipelines that it leads through.
        Raises Retryable if not all pipelines of the tokens are known here."""
        if not wanted.through:
            return [TokenView(level=wanted.level, sinks=wanted.sinks)] * len(tokens)
        require_reader(caller)
        found = [self._settle(caller, token, wanted) for token in tokens]
        if all(isinstance(each, TokenView) for each in found):
            return found
        sure = await self._news.catch_up()
        found = [
            each if isinstance(each, TokenView) else self._settle(caller, token, wanted)
            for token, each in zip(tokens, found, strict=True)
        ]
        if not sure and any(isinstance(each, TokenRefused) for each in found):
            raise Retryable("this status does not know all pipelines yet: try again")
        return found

    def _settle(self, caller: Caller, token: Token, wanted: WantedView) -> TokenView | Refusal:
        owned = [(part, self._owners.owner_of(part.pipeline_id)) for part in token.parts]
        known = [(p, owner) for p, owner in owned if owner and owner.generation >= p.generation]
        if len(known) < len(owned):
            return TokenRefused()
        try:
            return settle(wanted, caller, known, self._owners, "")
        except Refusal as refusal:
            return refusal

    def sinks_of(self, token: Token) -> set[str]:
        """Return the names of the sinks that may be asked for, as far as they are known here."""
        owned = [(part, self._owners.owner_of(part.pipeline_id)) for part in token.parts]
        return {
            name for part, owner in owned if owner is not None for name in sinks_of(part, owner)
        }

    async def _snapshot(self, pipelines: set[PipelineKey]) -> "_Snapshot":
        try:
            readings = await self._store.read(pipelines)
            views = {key: view_of(readings[key]) for key in pipelines}
        except Retryable:
            views = {key: view_of(None) for key in pipelines}
        return _Snapshot(self._store, self._replays, views)

    async def _outcome(self, token: Token, claims: list[Claim] | None, slots: SlotViews) -> Outcome:
        if claims is None:
            return unknown(token, UnknownReason.PIPELINE_NOT_KNOWN_YET)
        return await answer(token, await judge_all(claims, slots), slots)

    async def _claims_of(
        self, tokens: Sequence[Token], asked: TokenView
    ) -> list[list[Claim] | TokenRefused | None]:
        """Return the claims; None while a pipeline may be unknown only to this process."""
        found = [self._claims(token, asked) for token in tokens]
        if all(claims is not None for claims in found) or not await self._news.catch_up():
            return [*found]
        return [self._claims(token, asked) or TokenRefused() for token in tokens]

    def _claims(self, token: Token, asked: TokenView) -> list[Claim] | None:
        """Return the claims by pipeline; None if one of the pipelines is not known here."""
        by_pipeline: dict[PipelineKey, tuple[PipelineRecord, list[Part]]] = {}
        for part in token.parts:
            owner = self._owners.owner_of(part.pipeline_id)
            if owner is None:
                return None
            key = (owner.tenant, owner.pipeline_uid)
            _, mine = by_pipeline.setdefault(key, (owner, []))
            mine.append(part)
        return [
            Claim(
                pipeline=key,
                name=owner.name,
                parts=tuple(parts),
                asked=asked,
                names=all_names(asked.sinks, sinks_in(owner.stages)),
            )
            for key, (owner, parts) in by_pipeline.items()
        ]

    async def _claims_in_time(
        self, token: Token, deadline: float, asked: TokenView
    ) -> list[Claim] | None:
        while True:
            claims = await self.claims(token, asked)
            if isinstance(claims, TokenRefused):
                raise claims
            left_s = deadline - loop_time_s()
            if claims is not None or left_s <= 0 or self._hub.closing:
                return claims
            await self.directory_changed.wait(min(left_s, self._hub.tick_s))


class _Snapshot:
    """Pipelines as they were read for one request."""

    def __init__(self, store: SlotStore, replays: Replays, views: dict[PipelineKey, View]) -> None:
        self.store = store
        self.replays = replays
        self._views = views
        self.written: dict[tuple[PipelineKey, SinkPath], tuple[Span, ...]] = {}
        self._newest: dict[tuple[PipelineKey, str], list[Progress]] = {}

    def again(self) -> None:
        """Do nothing: no reader waits for another answer."""

    def view(self, pipeline: PipelineKey) -> View:
        return self._views[pipeline]

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]:
        known = self._newest.get((pipeline, sink))
        if known is None:
            known = await self.store.newest(pipeline, sink, NEWEST)
            self._newest[pipeline, sink] = known
        return known


def _ends(outcome: Outcome, asked: TokenView) -> bool:
    """Return True if waiting longer is useless: it is final, or the token never waits for these
    sinks."""
    return outcome.final or is_refused(outcome, asked)


def is_refused(outcome: Outcome, asked: TokenView) -> bool:
    """Return True if the question names sinks that the token does not wait for."""
    own = asked.sinks and not asked.through
    return bool(own) and outcome.reason == UnknownReason.NOTHING_REQUIRED


def _as_change(change: Change | None, marked: Outcome | None) -> Change | None:
    if change is None or marked is None or marked is change.outcome:
        return change
    return replace(change, outcome=marked)
