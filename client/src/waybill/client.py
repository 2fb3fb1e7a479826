"""The SDK's `Client`: every question to Waybill as a method. Its twin is `AsyncClient`.

Never repeats what changes something, except a `send`, which has a key: what is sent twice is kept
once.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from waybill import plans, questions
from waybill.connection import Connection
from waybill.errors import NotReady, Unreachable, WaybillError
from waybill.fields import Fields
from waybill.findings import Findings
from waybill.generations import Generations
from waybill.manifest_calls import ManifestCalls
from waybill.models import IssuedToken, Operation, Position, Receipt, Replayed, Span, StartFrom
from waybill.outcomes import Outcome
from waybill.payloads import Records
from waybill.pipeline_calls import PipelineCalls
from waybill.pipelines import Pipeline
from waybill.plans import Plan, Put
from waybill.sse import Following
from waybill.target import find_api_key, find_target
from waybill.tokens import AnyToken, Token, text_of
from waybill.waiting import (
    ANSWER_WAIT_S,
    MOMENT_S_MAX,
    REPEAT_S,
    WAIT_TIMEOUT_S,
    Patience,
    SystemTimer,
    Timer,
)
from waybill.watch_calls import WatchCalls

if TYPE_CHECKING:
    import httpx2

    from waybill.tracking import OnDelivery, Producer, Tracked

TIMEOUT_S = 60.0  # twice what ingress gives Kafka, so that its own answer is heard
START_TIMEOUT_S = 10.0  # of tracking: a broker that is there says its cluster's id at once
NAME_GRACE_S = 2.0  # a pipeline applied a moment ago may not be told of yet

T = TypeVar("T")


class Client(WatchCalls, ManifestCalls, PipelineCalls):
    """Talks to one Waybill; use it as a context manager.

    with Client() as client:
        receipt = client.send("orders", "orders", [{"order_id": 1}])
        outcome = receipt.token.wait(timeout_s=30)

    Each request ends after `timeout_s` of silence with NoAnswer, at latest. Besides what a method
    names, all of them raise Unreachable, NotAllowed (no API key, or one that may not do this),
    NotReady (try again after `retry_after_s`) and UnexpectedAnswer. Threads may share a client.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        repeat_s: float = REPEAT_S,
        transport: "httpx2.BaseTransport | None" = None,
        clock: Timer | None = None,
    ) -> None:
        """`url`: else WAYBILL_URL, else the stack around the folder, else 127.0.0.1:8080.

        `repeat_s`: so long a `send` is repeated when no answer comes, or Waybill is not ready; 0:
        never, and it has no key then.

        `api_key`: else WAYBILL_API_KEY, else none is sent. `transport` and `clock` are for tests.
        """
        self._connection = Connection(
            find_target(url, os.environ, Path.cwd()),
            timeout_s=timeout_s,
            api_key=find_api_key(api_key, os.environ),
            transport=transport,
        )
        self._generations = Generations()
        self._repeat_s = repeat_s
        self._clock = clock or SystemTimer()

    @property
    def url(self) -> str:
        """Where it talks to."""
        return self._connection.line.target.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections; tokens that it made stay good, as text."""
        self._connection.close()

    def send(
        self,
        pipeline: str,
        input: str,
        records: Records,
        *,
        atomic: bool = False,
        request_id: str | None = None,
        generation: int | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Send records, as dicts, dataclasses or JSON lines, in one request; or a `Payload`, for
        example of CSV.

        Unusable: a record has a value that JSON cannot hold; nothing is sent. Of rows that do not
        fit the input the good are kept and the bad named in the receipt; when all are bad, Invalid
        is raised and nothing is kept; with `atomic` also when one is bad. NotFound: no such
        pipeline or input. TooLarge: send less at once. The token is of this `generation` of the
        pipeline at least; else of what this client has last changed.

        It has a key of its own, and is repeated safely when a connection breaks: the records are
        kept once. After NoAnswer or Unreachable it is not known whether they were; with a `key` of
        yours you can send the very same records again, for a day, and have them kept once.
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
        return Receipt.read(self._write(question), self._hold)

    def token(self, text: str) -> Token:
        """The token that was stored as text; asks nothing. Unusable: the text cannot be one."""
        return self._hold(text_of(text))

    def token_for(
        self,
        pipeline: str,
        *,
        input: str | None = None,
        positions: Iterable[Position | Span] | None = None,
        connector: str | None = None,
        cluster_id: str | None = None,
        generation: int | None = None,
    ) -> IssuedToken:
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
        return IssuedToken.read(self._ask(question), self._hold)

    def replay(
        self,
        pipeline: str,
        ids: Iterable[str],
        *,
        again: bool = False,
        generation: int | None = None,
    ) -> Replayed:
        """Send dead letters to the topics that they come from, and get the token for them.

        Each is sent once, however often it is asked for, and the same ids get the same token; with
        `again` they are sent once more. All stages, sinks and pipelines that read the topic get
        them: also a sink that has such a record already. NotFound, Expired (retention took it) or
        Conflict (its topic was created again, or is no input of the pipeline): `rejected` has the
        index of each id that cannot be sent, and then none was. TooLarge: send less than 1,000 at
        once. `generation`: as for `send`.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.replay(pipeline, ids, again=again, if_match=if_match)
        return Replayed.read(self._ask(question), self._hold)

    def merge(self, tokens: Iterable[AnyToken]) -> Token:
        """One token for exactly what the tokens cover, as old as the oldest of them.

        They may be of several pipelines. NotFound or Expired: some are none of ours, or too old;
        `rejected` has their indexes. TooLarge: more than 10,000, or with too many gaps.
        """
        return self._hold(self._connection.ask(questions.merge(tokens)).text("token"))

    @contextmanager
    def track(
        self,
        producer: "Producer",
        pipeline: str,
        *,
        on_delivery: "OnDelivery | None" = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> Iterator["Tracked"]:
        """Cover what the block produces to the pipeline's inputs with one token.

        The producer is your own; what goes through the block's `produce` is tracked, and `token`
        covers exactly that. NotFound: no such pipeline. KafkaAway: the producer's Kafka does not
        answer within `timeout_s`. Needs confluent-kafka, which the extra [kafka] brings.
        """
        from waybill.tracking import Tracked, cluster_of

        known = self.pipeline(pipeline)
        cluster_id = cluster_of(producer, known, timeout_s)
        tracked = Tracked(self, producer, known, cluster_id, on_delivery)
        try:
            yield tracked
        finally:
            tracked.close()

    def outcome(self, token: AnyToken) -> Outcome:
        """What the token's status says now, `unknown` too.

        NotFound: no token of ours. Expired: older than tokens live.
        """
        return self._run(plans.outcome(token))

    def wait(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome, which need not be complete.

        StillInProgress or StillUnknown when `timeout_s` is over before it; else as `outcome`.
        Rides out dropped connections.
        """
        return self._run(plans.final(token, self._patience(timeout_s), self._heard))

    def follow(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Outcome]:
        """Every change up to the final outcome; when `timeout_s` is over raises as `wait` does."""
        patience = self._patience(timeout_s)
        if questions.long(token):
            return self._look_on(token, patience)
        return self._listen(token, patience)

    def apply(
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
        return self._change(questions.apply(manifest_text, name, allow_shared=allow_shared), wait_s)

    def check(
        self, manifest_text: str, *, allow_shared: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> Findings:
        """What is wrong with a manifest, and what it would make; nothing is made or changed.

        `allow_shared`: as `apply` has it.

        Errors come together, in the order of the text. WaitEnded: nobody has checked it within
        `timeout_s`. Invalid: Spark could not compile it in time.
        """
        question = questions.check(manifest_text, allow_shared=allow_shared)
        plan = plans.check(question, self._patience(timeout_s), self._heard)
        return self._run(plan)

    def maintain(
        self, name: str, sink: str, *, dry_run: bool = False, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """Keep the table of a sink in order, at once, by what its manifest names; `result` of the
        operation says what was done, or with `dry_run` would be. NotFound: no such pipeline."""
        return self._change(questions.maintain(name, sink, dry_run=dry_run), wait_s)

    def start(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Start a stopped or failed pipeline; NotFound when there is none."""
        return self._change(questions.start(name), wait_s)

    def stop(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Stop a pipeline; what it has not processed waits. NotFound when there is none."""
        return self._change(questions.stop(name), wait_s)

    def restart(
        self,
        name: str,
        start_from: StartFrom | None = None,
        *,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Run it with a new driver, which goes on where its sinks stand, and with `start_from` in
        topics that were deleted and created again."""
        return self._change(questions.restart(name, start_from), wait_s)

    def delete(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Delete a pipeline: what it has not processed ends `lost`."""
        operation = self._change(questions.delete(name), wait_s)
        self._generations.forget(name)
        return operation

    def operation(self, id: str, wait_s: float = 0.0) -> Operation:
        """The operation as soon as it is no longer pending, or as it is after `wait_s`."""
        found = self._run(plans.operation(id, self._patience(wait_s), self._heard))
        return self._generations.learn(found)

    def pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines, without the details that `pipeline` has."""
        return self._run(plans.pipelines())

    def pipeline(self, name: str) -> Pipeline:
        """One pipeline with its details; NotFound when there is none."""
        return Pipeline.read(self._connection.ask(questions.pipeline(name)))

    def wait_pipeline(
        self, name: str, phase: str = "Running", timeout_s: float = WAIT_TIMEOUT_S
    ) -> Pipeline:
        """The pipeline once it is in the phase.

        PipelineFailed when it comes to Failed instead, PhaseNotReached when the time is over.
        """
        grace = self._patience(min(NAME_GRACE_S, timeout_s))
        return self._run(plans.phase(name, phase, self._patience(timeout_s), grace, self._heard))

    def _change(self, question: questions.Question, wait_s: float) -> Operation:
        plan = plans.change(question, wait_s, self._patience(MOMENT_S_MAX))
        return self._generations.learn(self._run(plan))

    def _key(self, given: str | None) -> str | None:
        """Without one a request must not be repeated."""
        return given if given is not None or not self._repeat_s else str(uuid.uuid4())

    def _write(self, question: questions.Question) -> Fields:
        if not self._repeat_s:
            return self._ask(question)
        patience = self._patience(self._repeat_s)
        return self._run(plans.write(question, patience, self._heard))

    def _ask(self, question: questions.Question) -> Fields:
        return self._run(plans.ask(question, self._patience(MOMENT_S_MAX)))

    def _hold(self, text: str) -> Token:
        return Token(text, self)

    def _patience(self, timeout_s: float) -> Patience:
        return Patience(self._clock, timeout_s)

    def _heard(self) -> bool:
        return self._connection.line.heard

    def _run(self, plan: Plan[T]) -> T:
        """Carry out the plan: put its questions, keep its pauses."""
        try:
            step = next(plan)
            while True:
                if not isinstance(step, Put):
                    self._pause(step.seconds)
                    step = plan.send(None)
                    continue
                try:
                    answer = self._connection.ask(step.question, held_s=step.held_s)
                except WaybillError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _listen(self, token: AnyToken, patience: Patience) -> Iterator[Outcome]:
        following = Following(self._connection.line, questions.token_path(token), patience)
        while not following.ended():
            failure: Unreachable | NotReady
            try:
                question, silence_s = following.question(), following.silence_s
                with self._connection.listen(question, silence_s=silence_s) as pieces:
                    for piece in pieces:
                        yield from following.read(piece)
                        if following.ended():
                            return
                failure = following.ended_early()
            except (Unreachable, NotReady) as error:
                failure = error
            unknown = following.unknown_in(failure)
            if unknown is not None:
                yield unknown
            self._pause(following.pause_after(failure))

    def _look_on(self, token: AnyToken, patience: Patience) -> Iterator[Outcome]:
        last: Outcome | None = None
        while last is None or not last.final:
            last = self._run(plans.await_change(token, last, patience, self._heard))
            yield last

    def _pause(self, seconds: float) -> None:
        if seconds > 0.0:
            self._clock.sleep(seconds)
