"""An event loop that turns when it is told to, by simulated time: nothing in it really waits."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class TurningLoop(asyncio.AbstractEventLoop):
    """As much of a loop as tasks, events and time-outs need. Faults of callbacks are kept."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.faults: list[str] = []
        self._now_s = now_s
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def turn(self) -> bool:
        """Whatever is due now, once; whether there was anything."""
        while self._timers and self._timers[0][0] <= self._now_s():
            self._ready.append(heappop(self._timers)[2])
        due = [self._ready.popleft() for _ in range(len(self._ready))]
        asyncio._set_running_loop(self)
        try:
            for handle in due:
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)
        return bool(due)

    def cancel_all(self) -> None:
        """End every task, as the end of its process does."""
        while self._tasks:
            for task in [*self._tasks]:
                task.cancel()
            self.turn()
        self._ready.clear()
        self._timers.clear()

    def time(self) -> float:
        return self._now_s()

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        heappush(self._timers, (when, self._numbers, handle))
        return handle

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.faults.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass
