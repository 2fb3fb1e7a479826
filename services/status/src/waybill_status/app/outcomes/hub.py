"""Lets many requests wait for few answers: all requests for the same token share one.

A change of a pipeline reaches only the questions with answers that it can change. Each is answered
again once, and its readers are woken if the answer is another one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.tokens import Token
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.measuring import show_waiters
from waybill_status.app.outcomes.feeds import Feeds
from waybill_status.app.outcomes.question import Asked, SharedQuestion
from waybill_status.app.ports import Replays, SlotStore
from waybill_status.core.outcomes.claims import Claim, pipelines_of

TICK_S = 1.0  # between two comparisons of stamps, and before another try to subscribe


class Hub:
    def __init__(
        self,
        store: SlotStore,
        *,
        waiters_max: int,
        tick_s: float = TICK_S,
        replays: Replays | None = None,
    ) -> None:
        self.closing = False
        self.tick_s = tick_s
        self._store = store
        self._replays = replays or KnownReplays()
        self._waiters_max = waiters_max
        self._waiters = 0
        self._feeds = Feeds(store, tick_s=tick_s, on_change=self._ask)
        self._numbers = count()
        self._questions: dict[int, SharedQuestion] = {}
        self._by_asked: dict[Asked, SharedQuestion] = {}
        self._due: set[int] = set()
        self._asking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watch(self, token: Token, claims: Sequence[Claim]) -> AsyncIterator[SharedQuestion]:
        """Yield the question of a token, from its first answer on. Raises Refusal if too many
        wait."""
        if self._waiters >= self._waiters_max:
            detail = f"{self._waiters_max} requests wait already: ask without waiting"
            raise Refusal(Slug.TOO_MANY_WAITERS, detail)
        self._count(1)
        question = self._join(token, claims)
        question.readers += 1
        if question.change is None:
            self._ask([question.number])
        try:
            while question.change is None:
                await question.after(None, self.tick_s)
            yield question
        finally:
            self._count(-1)
            question.readers -= 1
            self._leave(question)

    def attend(
        self, caller: str, token: Token, claims: Sequence[Claim], tell: Callable[[], None]
    ) -> SharedQuestion:
        """Wait like `watch`, but without a request. The callback is called when the answer is
        final, or cannot be found. Ends with `dismiss`."""
        question = self._join(token, claims)
        question.listeners[caller] = tell
        return question

    def dismiss(self, caller: str, question: SharedQuestion) -> None:
        question.listeners.pop(caller, None)
        self._leave(question)

    async def run(self) -> None:
        """Feed the questions until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._feeds.listen())
            group.create_task(self._tick())

    def close(self) -> None:
        """Let every waiting request answer with what is known."""
        self.closing = True
        for question in self._questions.values():
            question.changed.notify()

    def _count(self, change: int) -> None:
        self._waiters += change
        show_waiters(self._waiters)

    def _join(self, token: Token, claims: Sequence[Claim]) -> SharedQuestion:
        asked = (token, claims[0].asked)
        question = self._by_asked.get(asked)
        if question is None or question.settled:
            number = next(self._numbers)
            feeds = [self._feeds.join(number, pipeline) for pipeline in pipelines_of(claims)]
            question = SharedQuestion(
                number, token, claims, feeds, self._store, replays=self._replays
            )
            self._by_asked[asked] = self._questions[number] = question
            self._ask([number])
        question.waiters += 1
        return question

    def _leave(self, question: SharedQuestion) -> None:
        question.waiters -= 1
        if question.waiters:
            return
        question.cancel()
        del self._questions[question.number]
        if self._by_asked.get(question.asked) is question:
            del self._by_asked[question.asked]
        for feed in question.feeds.values():
            self._feeds.leave(question.number, feed)

    def _ask(self, questions: Iterable[int]) -> None:
        self._due.update(questions)
        if self._due and self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())

    async def _ask_all(self) -> None:
        """Answer all due questions one after the other, so that other tasks of this process run in
        between."""
        try:
            while self._due:
                due, self._due = self._due, set()
                for number in due:
                    if (question := self._questions.get(number)) is not None:
                        question.ask()
                        await asyncio.sleep(0)
        finally:
            self._asking = None  # here, so that a fault does not end the asking for good

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.tick_s)
            await self._feeds.look()
            self._ask([n for n, question in self._questions.items() if question.unread])
