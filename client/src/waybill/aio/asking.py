"""Carries out the plans of a client: it sends their questions and sleeps for their pauses.

The methods of the client call it. `waybill.plans` decides what to ask.
"""

import uuid
from typing import TypeVar

from waybill import plans
from waybill.aio.clock import AsyncTimer
from waybill.aio.connection import AsyncConnection
from waybill.errors import WaybillError
from waybill.fields import Fields
from waybill.generations import Generations
from waybill.models import Operation
from waybill.plans import Plan, Put
from waybill.questions import Question
from waybill.waiting import MOMENT_S_MAX, Patience

T = TypeVar("T")


class AsyncAsking:
    """The base of all methods of a client: its connection, its clock, and the generations it
    knows."""

    def __init__(self, connection: AsyncConnection, clock: AsyncTimer, repeat_s: float) -> None:
        self._connection = connection
        self._clock = clock
        self._repeat_s = repeat_s
        self._generations = Generations()

    async def _change(self, question: Question, wait_s: float) -> Operation:
        plan = plans.change(question, wait_s, self._patience(MOMENT_S_MAX))
        return self._generations.learn(await self._run(plan))

    def _key(self, given: str | None) -> str | None:
        """Return the key of a request: `given`, or a new one if this client repeats requests.

        Else it is None: without a key a request must not be repeated.
        """
        return given if given is not None or not self._repeat_s else str(uuid.uuid4())

    async def _write(self, question: Question) -> Fields:
        if not self._repeat_s:
            return await self._ask(question)
        patience = self._patience(self._repeat_s)
        return await self._run(plans.write(question, patience, self._has_answered))

    async def _ask(self, question: Question) -> Fields:
        return await self._run(plans.ask(question, self._patience(MOMENT_S_MAX)))

    def _patience(self, timeout_s: float) -> Patience:
        return Patience(self._clock, timeout_s)

    def _has_answered(self) -> bool:
        return self._connection.line.has_answered

    async def _run(self, plan: Plan[T]) -> T:
        """Carry out the plan: send its questions, sleep for its pauses, and return its result."""
        try:
            step = next(plan)
            while True:
                if not isinstance(step, Put):
                    await self._pause(step.seconds)
                    step = plan.send(None)
                    continue
                try:
                    answer = await self._connection.ask(step.question, wait_s=step.wait_s)
                except WaybillError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _pause(self, seconds: float) -> None:
        if seconds > 0.0:
            await self._clock.sleep(seconds)
