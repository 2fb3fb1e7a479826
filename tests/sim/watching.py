"""Watches: what Kafka has of them, and the process of status that tells of them, which is the real
one. It says what is told to the checker, as a reader of committed records sees it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Final, Protocol

from pydantic import JsonValue

from sim.checker import Checker
from sim.clients import Issued
from sim.clocks import Clocks
from sim.loop import TurningLoop
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.asked_views import settle
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.errors import Refusal, Retryable, TokenRefused
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.token_views import WHOLE, TokenView, WantedView
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.words import UnknownReason, WatchState
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.ports import DeliveryNote, WatchReport
from waybill_status.app.watches.deliveries import DeliveryMeans
from waybill_status.app.watches.host_permits import HostPermits
from waybill_status.app.watches.watch_judge import WatchJudge
from waybill_status.app.watches.watchers import Watchers
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.watches.deliveries import Answered
from waybill_status.core.watches.delivery_book import DeliveryBook

WHOLE_WAYS: Final = 0.4  # of those that are watched
NEVER_KNOWN: Final = frozenset(
    {
        UnknownReason.BATCH_FORGOTTEN,
        UnknownReason.SINK_CAME_LATER,
        UnknownReason.NOTHING_REQUIRED,
    }
)
"""Of those that are watched through other pipelines."""
ON: Final = 0.5
UNSURE: Final = 0.2  # of what is written: it fails, and counts in half of the cases


Ask = Callable[[str, TokenView], Outcome | TokenRefused]


class Around(Protocol):
    dice: Random
    checker: Checker

    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    @property
    def clocks(self) -> Clocks: ...

    def open(self, issued: Issued) -> Token: ...

    def say(self, text: str) -> None: ...


class Watches:
    """Fulfils what `Watchers` needs of the world: one partition, and who may write to it."""

    def __init__(self, world: Around, loop: TurningLoop) -> None:
        self._world = world
        self._loop = loop
        self._log: list[TokenWatch] = []
        self._issued: dict[str, Issued] = {}
        self._book = WatchBook()
        self._watchers: Watchers | None = None
        self.owner = 0
        self.mine = frozenset({0})
        self.epoch = 1

    def begin(self, tokens: Tokens, hub: Hub) -> None:
        """A process that knows what the topic has."""
        self._book = WatchBook()
        for watch in self._log:
            self._book.accept(watch)
        clock = self._world.clocks.status
        means = DeliveryMeans(
            book=DeliveryBook(),
            watches=self._book,
            receivers=self,
            events=self,
            permits=HostPermits(),
            clock=clock,
            source="/waybill/sim",
        )
        self._watchers = Watchers(
            WatchJudge(tokens, hub, clock, source="/waybill/sim", show=_shown),
            self._book,
            self,
            writers=self,
            shares=self,
            means=means,
        )
        self._loop.create_task(self._live(self._watchers))

    def watch(self, issued: Issued) -> None:
        id, now_ms = f"w{len(self._issued)}", self._world.clocks.ingress.now_ms()  # noqa: A001
        self._issued[id] = issued
        self._write(
            TokenWatch(
                id=id,
                tenant=DEFAULT_TENANT,
                actor="key",
                token=issued.text,
                at=now_ms,
                expires_at=now_ms + TOKEN_LIFE_MS,
                state=WatchState.OPEN,
                labels={},
                view=self._view(issued),
            )
        )

    def _view(self, issued: Issued) -> TokenView:
        """All of the way, or some sinks that there were when the token was born; or on, into a
        pipeline that reads what this one writes."""
        dice = self._world.dice
        token = self._world.open(issued)
        if dice.random() < ON and (on := self._on(token, issued.uid)) is not None:
            return on
        names = {
            each.sink.name
            for record in self._world.records
            if (record.pipeline_uid, record.generation) == (issued.uid, issued.generation)
            for topic_id in {span.topic_id for part in token.parts for span in part.spans}
            for each in Topology(record.stages).awaited(topic_id, issued.generation)
        }
        if not names or dice.random() < WHOLE_WAYS:
            return WHOLE
        return TokenView(
            sinks=tuple(sorted(dice.sample(sorted(names), dice.randint(1, len(names)))))
        )

    def _on(self, token: Token, uid: str) -> TokenView | None:
        known = PipelineDirectory()
        for record in self._world.records:
            known.accept(record)
        owned = [(part, known.owner_of(part.pipeline_id)) for part in token.parts]
        ours = [(part, owner) for part, owner in owned if owner is not None]
        for record in known.living(DEFAULT_TENANT):
            with suppress(Refusal):
                return settle(WantedView(through=(record.name,)), ANYONE, ours, known, "")
        return None

    def end(self, ask: Ask) -> None:
        """I2: each was told."""
        for watch in self._book.all():
            if watch.open and not self._unknown(watch, ask):
                places = self._issued[watch.id].places or "all"
                asked = watch.view.through or watch.view.sinks or "whole"
                detail = f"the watch of a token ({places}, {asked}) is not told"
                self._world.checker.report("I2", detail)

    def _unknown(self, watch: TokenWatch, ask: Ask) -> bool:
        return bool(watch.view.through) and _is_unknown(ask(watch.token, watch.view))

    def ask(self, ask: Ask) -> None:
        """Who asks is told the same, or nothing for now."""
        for watch in self._book.all():
            issued = self._issued[watch.id]
            outcome = ask(issued.text, watch.view)
            if not isinstance(outcome, Outcome):
                self._world.checker.report("I10", "a genuine token is refused")
            elif outcome.final:
                token = self._world.open(issued)
                self._world.checker.told_as(issued, token, outcome.outcome, watch.view)

    def report(self, reports: Sequence[WatchReport]) -> None:
        for _, _, watch, _ in reports:
            assert watch.ended_as is not None
            known = self._book.find(watch.id)
            if known is None or not known.open:
                self._world.checker.report("I3", f"{watch.id} is told once more")
            issued = self._issued[watch.id]
            self._world.say(f"who watches {issued.places or 'all'}: {watch.ended_as}")
            token = self._world.open(issued)
            self._world.checker.told_as(issued, token, watch.ended_as, watch.view)
            self._write(watch)

    def uncertain(self) -> bool:
        return self._world.dice.random() < UNSURE

    def _write(self, watch: TokenWatch) -> None:
        self._log.append(watch)
        self._book.accept(watch)
        if self._watchers is not None:
            self._loop.call_soon(self._watchers.receive, watch)

    async def _live(self, watchers: Watchers) -> None:
        async with watchers.running():
            await asyncio.Event().wait()

    # News, WatchShares, WatchVoices, Receivers, ToldEvents

    async def catch_up(self) -> bool:
        await asyncio.sleep(0)
        return True

    def partition_of(self, key: str) -> int:
        return 0

    @asynccontextmanager
    async def writer(self, partition: int) -> AsyncIterator["Writer"]:
        self.owner += 1
        yield Writer(self, self.owner)

    async def send(self, delivery: WebhookDelivery, event: str, now_s: int) -> Answered:
        raise AssertionError("no watch here has a webhook")

    async def find(self, watch: TokenWatch) -> str | None:
        raise AssertionError("no watch here has a webhook")


class Writer:
    def __init__(self, watches: Watches, number: int) -> None:
        self._watches = watches
        self._number = number

    async def report(self, reports: Sequence[WatchReport]) -> None:
        await asyncio.sleep(0)
        self._check()
        if self._watches.uncertain():
            if self._watches.uncertain():
                self._watches.report(reports)
            raise Retryable("nobody knows")
        self._watches.report(reports)

    async def note(self, notes: Sequence[DeliveryNote]) -> None:
        raise AssertionError("no watch here has a webhook")

    async def finish(self) -> None:
        self._check()

    def _check(self) -> None:
        if self._watches.owner != self._number:
            raise PartitionLost("another has begun")


def _is_unknown(outcome: Outcome | TokenRefused) -> bool:
    """For good: it is never told."""
    return isinstance(outcome, Outcome) and outcome.reason in NEVER_KNOWN


def _shown(outcome: Outcome) -> dict[str, JsonValue]:
    return {"outcome": outcome.outcome}
