"""The SDK's `AsyncClient`: `Client` for an event loop, with the same words."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from waybill import plans, questions
from waybill.client import NAME_GRACE_S, START_TIMEOUT_S, TIMEOUT_S
from waybill.connection import AsyncConnection
from waybill.errors import NotReady, Unreachable, WaybillError
from waybill.fields import Fields
from waybill.findings import Findings
from waybill.generations import Generations
from waybill.manifest_calls import AsyncManifestCalls
from waybill.models import (
    AsyncIssuedToken,
    AsyncReceipt,
    AsyncReplayed,
    Operation,
    Position,
    Span,
    StartFrom,
)
from waybill.outcomes import Outcome
from waybill.payloads import Records
from waybill.pipeline_calls import AsyncPipelineCalls
from waybill.pipelines import Pipeline
from waybill.plans import Plan, Put
from waybill.sse import Following
from waybill.target import find_api_key, find_target
from waybill.tokens import AnyToken, AsyncToken, text_of
from waybill.waiting import (
    ANSWER_WAIT_S,
    MOMENT_S_MAX,
    REPEAT_S,
    WAIT_TIMEOUT_S,
    AsyncTimer,
    Patience,
)
from waybill.watch_calls import AsyncWatchCalls

if TYPE_CHECKING:
    import httpx2

    from waybill.tracking import AsyncTracked, OnDelivery, Producer

T = TypeVar("T")


class AsyncSystemClock:
    """The machine's clock, for an event loop."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class AsyncClient(AsyncWatchCalls, AsyncManifestCalls, AsyncPipelineCalls):
    """Talks to one Waybill from an event loop; use it as an asynchronous context manager.

    async with AsyncClient() as client:
        receipt = await client.send("orders", "orders", [{"order_id": 1}])
        outcome = await receipt.token.wait(timeout_s=30)

    Each method has the contract, the time-outs and the errors of its namesake in `Client`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        repeat_s: float = REPEAT_S,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        clock: AsyncTimer | None = None,
    ) -> None:
        """`url`: else WAYBILL_URL, else the stack around the folder, else 127.0.0.1:8080.

        `api_key`: else WAYBILL_API_KEY, else none is sent. `transport` and `clock` are for tests.
        """
        self._connection = AsyncConnection(
            find_target(url, os.environ, Path.cwd()),
            timeout_s=timeout_s,
            api_key=find_api_key(api_key, os.environ),
            transport=transport,
        )
        self._generations = Generations()
        self._repeat_s = repeat_s
        self._clock = clock or AsyncSystemClock()

    @property
    def url(self) -> str:
        """Where it talks to."""
        return self._connection.line.target.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections; tokens that it made stay good, as text."""
        await self._connection.close()

    async def send(
        self,
        pipeline: str,
        input: str,
        records: Records,
        *,
        atomic: bool = False,
        request_id: str | None = None,
        generation: int | None = None,
        key: str | None = None,
    ) -> AsyncReceipt:
        """Send records, as dicts, dataclasses or JSON lines, in one request; or a `Payload`, for
        example of CSV.

        Unusable: a record has a value that JSON cannot hold; nothing is sent. Of rows that do not
        fit the input the good are kept and the bad named in the receipt; when all are bad, Invalid
        is raised and nothing is kept; with `atomic` also when one is bad. NotFound: no such
        pipeline or input. TooLarge: send less at once. After NoAnswer or Unreachable it is not
        known whether they were kept. The token is of this `generation` of the pipeline at least;
        else of what this client has last changed.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.send(
            pipeline,
            input,
            records,
            atomic=atomic,
            request_id=request_id,
            if_match=if_match,
            key=self._key(key),
        )
        return AsyncReceipt.read(await self._write(question), self._hold)

    def token(self, text: str) -> AsyncToken:
        """The token that was stored as text; asks nothing. Unusable: the text cannot be one."""
        return self._hold(text_of(text))

    async def token_for(
        self,
        pipeline: str,
        *,
        input: str | None = None,
        positions: Iterable[Position | Span] | None = None,
        connector: str | None = None,
        cluster_id: str | None = None,
        generation: int | None = None,
    ) -> AsyncIssuedToken:
        """A token for all that an input holds now, for what a connector of it has written by now,
        or for positions in Kafka.

        `cluster_id`: of the Kafka that the positions are in, to be sure that it is this Waybill's.
        Invalid: a position that is not there, or in no topic that the pipeline reads. NotFound: no
        such pipeline, input or connector. `generation`: as for `send`.
        """
        question = questions.token_for(
            pipeline,
            input=input,
            positions=positions,
            connector=connector,
            cluster_id=cluster_id,
            if_match=self._generations.if_match(pipeline, generation),
        )
        return AsyncIssuedToken.read(await self._ask(question), self._hold)

    async def replay(
        self,
        pipeline: str,
        ids: Iterable[str],
        *,
        again: bool = False,
        generation: int | None = None,
    ) -> AsyncReplayed:
        """Send dead letters to the topics that they come from, and get the token for them.

        As `Client.replay`.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.replay(pipeline, ids, again=again, if_match=if_match)
        return AsyncReplayed.read(await self._ask(question), self._hold)

    async def merge(self, tokens: Iterable[AnyToken]) -> AsyncToken:
        """One token for exactly what the tokens cover, as old as the oldest of them.

        They may be of several pipelines. NotFound or Expired: some are none of ours, or too old;
        `rejected` has their indexes. TooLarge: more than 10,000, or with too many gaps.
        """
        return self._hold((await self._connection.ask(questions.merge(tokens))).text("token"))

    @asynccontextmanager
    async def track(
        self,
        producer: "Producer",
        pipeline: str,
        *,
        on_delivery: "OnDelivery | None" = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> AsyncIterator["AsyncTracked"]:
        """Cover what the block produces to the pipeline's inputs with one token.

        The producer is your own; what goes through the block's `produce` is tracked, and `token`
        covers exactly that. NotFound: no such pipeline. KafkaAway: the producer's Kafka does not
        answer within `timeout_s`. Needs confluent-kafka, which the extra [kafka] brings.
        """
        from waybill.tracking import AsyncTracked, cluster_of

        known = await self.pipeline(pipeline)
        cluster_id = await asyncio.to_thread(cluster_of, producer, known, timeout_s)
        tracked = AsyncTracked(self, producer, known, cluster_id, on_delivery)
        try:
            yield tracked
        finally:
            tracked.close()

    async def outcome(self, token: AnyToken) -> Outcome:
        """What the token's status says now, `unknown` too.

        NotFound: no token of ours. Expired: older than tokens live.
        """
        return await self._run(plans.outcome(token))

    async def wait(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome, which need not be complete.

        StillInProgress or StillUnknown when `timeout_s` is over before it; else as `outcome`.
        Rides out dropped connections.
        """
        return await self._run(plans.final(token, self._patience(timeout_s), self._heard))

    def follow(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncIterator[Outcome]:
        """Every change up to the final outcome; when `timeout_s` is over raises as `wait` does."""
        patience = self._patience(timeout_s)
        if questions.long(token):
            return self._look_on(token, patience)
        return self._listen(token, patience)

    async def apply(
        self,
        manifest_text: str,
        name: str | None = None,
        *,
        allow_shared: bool = False,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Create or change a pipeline; Invalid names line and column of what is wrong.

        Conflict: another pipeline writes to the topic or table of a sink. With `allow_shared` that
        is only a warning, unless both upsert by other keys.

        As with every change, the operation is `done` or `failed` if that is so within `wait_s`,
        which is 10 at most; else it is `pending`, and `operation` tells what becomes of it.
        """
        return await self._change(
            questions.apply(manifest_text, name, allow_shared=allow_shared), wait_s
        )

    async def check(
        self, manifest_text: str, *, allow_shared: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> Findings:
        """As `Client.check`."""
        question = questions.check(manifest_text, allow_shared=allow_shared)
        plan = plans.check(question, self._patience(timeout_s), self._heard)
        return await self._run(plan)

    async def maintain(
        self, name: str, sink: str, *, dry_run: bool = False, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """As `Client.maintain`."""
        return await self._change(questions.maintain(name, sink, dry_run=dry_run), wait_s)

    async def start(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Start a stopped or failed pipeline; NotFound when there is none."""
        return await self._change(questions.start(name), wait_s)

    async def stop(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Stop a pipeline; what it has not processed waits. NotFound when there is none."""
        return await self._change(questions.stop(name), wait_s)

    async def restart(
        self,
        name: str,
        start_from: StartFrom | None = None,
        *,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Run it with a new driver, which goes on where its sinks stand.

        `start_from`: where to begin in topics that were deleted and created again.
        """
        return await self._change(questions.restart(name, start_from), wait_s)

    async def delete(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Delete a pipeline: what it has not processed ends `lost`."""
        operation = await self._change(questions.delete(name), wait_s)
        self._generations.forget(name)
        return operation

    async def operation(self, id: str, wait_s: float = 0.0) -> Operation:
        """The operation as soon as it is no longer pending, or as it is after `wait_s`."""
        found = await self._run(plans.operation(id, self._patience(wait_s), self._heard))
        return self._generations.learn(found)

    async def pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines, without the details that `pipeline` has."""
        return await self._run(plans.pipelines())

    async def pipeline(self, name: str) -> Pipeline:
        """One pipeline with its details; NotFound when there is none."""
        return Pipeline.read(await self._connection.ask(questions.pipeline(name)))

    async def wait_pipeline(
        self, name: str, phase: str = "Running", timeout_s: float = WAIT_TIMEOUT_S
    ) -> Pipeline:
        """The pipeline once it is in the phase.

        PipelineFailed when it comes to Failed instead, PhaseNotReached when the time is over.
        """
        grace = self._patience(min(NAME_GRACE_S, timeout_s))
        return await self._run(
            plans.phase(name, phase, self._patience(timeout_s), grace, self._heard)
        )

    async def _change(self, question: questions.Question, wait_s: float) -> Operation:
        plan = plans.change(question, wait_s, self._patience(MOMENT_S_MAX))
        return self._generations.learn(await self._run(plan))

    def _key(self, given: str | None) -> str | None:
        """Without one a request must not be repeated."""
        return given if given is not None or not self._repeat_s else str(uuid.uuid4())

    async def _write(self, question: questions.Question) -> Fields:
        if not self._repeat_s:
            return await self._ask(question)
        patience = self._patience(self._repeat_s)
        return await self._run(plans.write(question, patience, self._heard))

    async def _ask(self, question: questions.Question) -> Fields:
        return await self._run(plans.ask(question, self._patience(MOMENT_S_MAX)))

    def _hold(self, text: str) -> AsyncToken:
        return AsyncToken(text, self)

    def _patience(self, timeout_s: float) -> Patience:
        return Patience(self._clock, timeout_s)

    def _heard(self) -> bool:
        return self._connection.line.heard

    async def _run(self, plan: Plan[T]) -> T:
        """Carry out the plan: put its questions, keep its pauses."""
        try:
            step = next(plan)
            while True:
                if not isinstance(step, Put):
                    await self._pause(step.seconds)
                    step = plan.send(None)
                    continue
                try:
                    answer = await self._connection.ask(step.question, held_s=step.held_s)
                except WaybillError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _listen(self, token: AnyToken, patience: Patience) -> AsyncIterator[Outcome]:
        following = Following(self._connection.line, questions.token_path(token), patience)
        while not following.ended():
            failure: Unreachable | NotReady
            try:
                question, silence_s = following.question(), following.silence_s
                async with self._connection.listen(question, silence_s=silence_s) as pieces:
                    async for piece in pieces:
                        for outcome in following.read(piece):
                            yield outcome
                        if following.ended():
                            return
                failure = following.ended_early()
            except (Unreachable, NotReady) as error:
                failure = error
            unknown = following.unknown_in(failure)
            if unknown is not None:
                yield unknown
            await self._pause(following.pause_after(failure))

    async def _look_on(self, token: AnyToken, patience: Patience) -> AsyncIterator[Outcome]:
        last: Outcome | None = None
        while last is None or not last.final:
            last = await self._run(plans.await_change(token, last, patience, self._heard))
            yield last

    async def _pause(self, seconds: float) -> None:
        if seconds > 0.0:
            await self._clock.sleep(seconds)
