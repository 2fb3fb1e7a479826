"""Decides what to ask next, when to pause and when to end, if one question is not enough. Pure.

A plan is a generator. It yields `Put` with a question, or `Delay` with a time. The client does
that, and sends the answer into the plan, or throws the error into it. Then the plan yields its next
step. What the plan returns is the result of the client's method. So both clients, with and without
an event loop, share every decision.

There are three ways to try again. `ask` repeats a question if Waybill says that nothing was done
and that it will be ready in a moment. `write` repeats a question that has a key: after a broken
connection, and while Waybill is not ready, unless somebody must act first. `_look_until` asks until
an answer is final. It lets the server wait with its answer, and asks again after a broken
connection or while Waybill is not ready.

All of them end with the caller's `Patience`. Then an error is raised as it is; `_look_until`
returns its last answer. If nothing has ever answered at the URL, no Waybill is there: `_look_until`
raises at once, and so does `write` for a request that was not sent.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from waybill import questions
from waybill.errors import Invalid, NotFound, NotReady, ProblemError, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.findings import Findings, findings_in
from waybill.models import Operation
from waybill.outcomes import Outcome, not_final, outcome_in
from waybill.pipelines import Pipeline, in_phase, is_in, out_of_reach, refuse_out_of_reach
from waybill.problems import failure_in, problem_from
from waybill.questions import Question
from waybill.tokens import AnyToken
from waybill.waiting import Patience

PAGES_MAX = 1_000  # a cursor that never ends is a fault of the server
CHECK_WAIT_S = 10.0  # so long the answer to a check may take, before it is an operation
CHANGE_INTERVAL_S = 1.0  # between two looks at a token that is too long for an event stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A step: send the question; the answer is sent back, a failure is thrown back."""

    question: Question
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Delay:
    """A step: let so much time pass."""

    seconds: float


Plan = Generator[Put | Delay, Fields | None, T]
HasAnswered = Callable[[], bool]
"""Returns True if anything has ever answered at this URL."""


def ask(question: Question, patience: Patience, wait_s: float = 0.0) -> Plan[Fields]:
    """Return the answer; wait while Waybill needs only a moment, because nothing was done yet."""
    while True:
        try:
            return (yield from _ask(question, wait_s))
        except NotReady as error:
            if not error.momentary:
                raise
            yield Delay(patience.endure(error))


def write(question: Question, patience: Patience, has_answered: HasAnswered) -> Plan[Fields]:
    """Return the answer to a question that has a key, so that it may be sent again.

    It is sent again after a connection that broke, and as long as Waybill is not ready. An error
    that somebody must mend first is raised at once.
    """
    while True:
        try:
            return (yield from _ask(question))
        except Unreachable as error:
            if not (error.sent or has_answered()):
                raise
            yield Delay(patience.endure(error))
        except NotReady as error:
            if error.for_people:
                raise
            yield Delay(patience.endure(error))


def change(question: Question, wait_s: float, patience: Patience) -> Plan[Operation]:
    """Return the change as it is after `wait_s`, at the latest.

    A change that was accepted and then refused is a failed operation, as it is when it is asked for
    later.
    """
    try:
        answer = yield from ask(questions.with_wait(question, wait_s), patience, wait_s)
        return Operation.read_answer(answer)
    except ProblemError as error:
        failed = failure_in(error)
        if failed is None:
            raise
        return failed


def check(question: Question, patience: Patience, has_answered: HasAnswered) -> Plan[Findings]:
    """Return what is wrong, whether Waybill saw it at once or only Spark did."""
    try:
        answer = yield from ask(question, patience, CHECK_WAIT_S)
    except Invalid as error:
        if not error.errors or failure_in(error) is not None:
            raise
        return Findings.of_refusal(error)
    if "operation" not in answer.raw:
        return Findings.read(answer)
    return findings_in((yield from operation(answer.text("operation"), patience, has_answered)))


def outcome(token: AnyToken, *, wait_s: float = 0.0) -> Plan[Outcome]:
    """Return the outcome as it is now; `unknown` too, though it is a 503."""
    if questions.long(token):
        return (yield from _query(token, wait_s))
    try:
        question = questions.outcome(token, wait_s=wait_s)
        return Outcome.read((yield from _ask(question, wait_s)))
    except NotReady as error:
        unknown = outcome_in(error)
        if unknown is None:
            raise
        return unknown


def _query(token: AnyToken, wait_s: float) -> Plan[Outcome]:
    """Return the outcome of a token that is too long for an address."""
    answer = yield from _ask(questions.outcomes([token], wait_s=wait_s), wait_s)
    found = answer.objects("outcomes")
    if len(found) != 1:
        raise UnexpectedAnswer(f"{answer.where} has {len(found)} outcomes for one token")
    error = found[0].object_or_none("error")
    if error is None:
        return Outcome.read(found[0])
    problem: ProblemError | None = problem_from(error.whole("status"), {}, error)
    raise problem or UnexpectedAnswer(f"{error.where} is no problem")


def final(token: AnyToken, patience: Patience, has_answered: HasAnswered) -> Plan[Outcome]:
    """Return the final outcome; raise StillInProgress or StillUnknown if the time is over first."""
    found = yield from _look_until(
        lambda wait_s: outcome(token, wait_s=wait_s),
        lambda found: found.final,
        patience,
        has_answered,
    )
    if not found.final:
        raise not_final(found)
    return found


def await_change(
    token: AnyToken, last: Outcome | None, patience: Patience, has_answered: HasAnswered
) -> Plan[Outcome]:
    """Return the first outcome other than `last`; raise as `final` when the time is over."""
    while True:
        found = yield from _look_until(
            lambda _: outcome(token), lambda _: True, patience, has_answered
        )
        if found != last:
            return found
        if patience.over:
            raise not_final(found)
        yield Delay(min(CHANGE_INTERVAL_S, patience.left_s))


def operation(id: str, patience: Patience, has_answered: HasAnswered) -> Plan[Operation]:
    """Return the operation as soon as it is no longer pending, or as it is when the time is
    over."""

    def look(wait_s: float) -> Plan[Operation]:
        return Operation.read((yield from _ask(questions.operation(id, wait_s=wait_s), wait_s)))

    return (yield from _look_until(look, lambda found: not found.pending, patience, has_answered))


def pipelines(
    patience: Patience, phases: Sequence[str] = (), tags: Sequence[str] = ()
) -> Plan[tuple[Pipeline, ...]]:
    """Return all pipelines, page by page. UnexpectedAnswer: the pages have no end."""
    found: list[Pipeline] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = yield from ask(questions.pipelines(cursor, phases, tags), patience)
        found.extend(Pipeline.read(item) for item in page.objects("items"))
        cursor = page.text_or_none("next_cursor")
        if cursor is None:
            return tuple(found)
    raise UnexpectedAnswer(f"{page.where} has more than {PAGES_MAX} pages")


def phase(
    name: str,
    wanted: str,
    patience: Patience,
    grace: Patience,
    has_answered: HasAnswered,
    *,
    somebody_acts: bool = True,
) -> Plan[Pipeline]:
    """Return the pipeline once it is in the phase; until `grace` is over it may not be known yet.

    Unless `somebody_acts` meanwhile, a pipeline that rests in another phase ends the wait.
    """

    def look(_: float) -> Plan[Pipeline | None]:
        try:
            return Pipeline.read((yield from _ask(questions.pipeline(name))))
        except NotFound:
            if grace.over:
                raise
            return None

    def done(seen: Pipeline | None) -> bool:
        if seen is None:
            return False
        rests = not somebody_acts and out_of_reach(seen, wanted)
        return rests or is_in(seen, wanted) or seen.failed

    seen = yield from _look_until(look, done, patience, has_answered)
    if seen is None:
        seen = Pipeline.read((yield from _ask(questions.pipeline(name))))
    if not somebody_acts:
        refuse_out_of_reach(seen, wanted)
    return in_phase(seen, wanted)


def _look_until(
    look: Callable[[float], Plan[T]],
    done: Callable[[T], bool],
    patience: Patience,
    has_answered: HasAnswered,
) -> Plan[T]:
    """Return the first answer that is `done`, or the last one before the patience was over.

    It asks again after dropped connections, and while services are not ready. But if nothing has
    ever answered (`has_answered`), the server is not there, and the caller should know at once.
    """
    while True:
        try:
            answer = yield from look(patience.long_poll_s())
        except (Unreachable, NotReady) as error:
            if not has_answered():
                raise
            yield Delay(patience.endure(error))
            continue
        if done(answer) or patience.over:
            return answer
        yield Delay(patience.pace(answer.retry_after_s if isinstance(answer, Outcome) else None))


def _ask(question: Question, wait_s: float = 0.0) -> Plan[Fields]:
    answer = yield Put(question=question, wait_s=wait_s)
    assert answer is not None, "a question is answered or throws"
    return answer
