"""Routes of status: HTTP in, use case, HTTP out. Decides nothing."""

import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import JsonValue, TypeAdapter, ValidationError

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, invalid
from waybill_shared.contract.problems import Slug, problem_body
from waybill_shared.contract.token_views import TokenView, WantedView
from waybill_shared.contract.tokens import CHARACTERS_MAX, Token
from waybill_shared.contract.words import OutcomeKind, TokenLevel
from waybill_shared.http.app import caller, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, Responses, body_as, refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import QueryAnswer, QueryBody, TokenError
from waybill_status.adapters.http.streams import EVENT_STREAM, EventStream
from waybill_status.app.measuring import begin_outcomes, count_outcome, measure_wait
from waybill_status.app.outcomes.question import Change
from waybill_status.app.outcomes.tokens import Tokens, is_refused
from waybill_status.core.outcomes.outcome import Outcome, with_less_dead

WAIT_S_MAX = 60
TOKENS_MAX = 1_000
DEAD_MAX: Final = 10_000  # dead letters in the answer to one query: 3 MB
PATH_TOKEN_CHARACTERS_MAX = 4_096  # proxies cut longer addresses
OUTCOME_ANSWERS: Final[Responses] = {
    200: shown("complete", streamed=True, others={"where records have died": "with_dead_letters"}),
    **refusals(
        Slug.TOKEN_NOT_FOUND,
        Slug.TOKEN_EXPIRED,
        Slug.TOKEN_TOO_LONG,
        Slug.INVALID,
        Slug.TOO_MANY_WAITERS,
        Slug.OUTCOME_UNKNOWN,
        Slug.NOT_AVAILABLE_NOW,
    ),
}
QUERY_REFUSALS: Final = refusals(
    *OF_BODIES,
    Slug.TOO_MANY_TOKENS,
    Slug.TOKEN_TOO_LONG,
    Slug.INVALID,
    Slug.TOO_MANY_WAITERS,
    Slug.NOT_AVAILABLE_NOW,
)
OUTCOME: Final = TypeAdapter(Outcome)
VIEW: Final = TypeAdapter(WantedView)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """A change as a stream sends it; the digest shows whether a reader has received the same
    before."""

    digest: str
    text: bytes


_events: Final[WeakKeyDictionary[Change, _Event]] = WeakKeyDictionary()

Wait = Annotated[
    float,
    Query(ge=0, le=WAIT_S_MAX, allow_inf_nan=False, description="seconds to hold the request"),
]

Sinks = Annotated[
    tuple[str, ...],
    Query(
        description="several may be given, or with commas: only these are waited for, also such"
        " that another stage reads; else all at the end of the pipeline"
    ),
]

Through = Annotated[
    tuple[str, ...],
    Query(
        description="several may be given, or with commas: pipelines after the token's own, each"
        " of which reads what the one before it writes; `sinks` are those of the last"
    ),
]


async def _view(
    sinks: Sinks = (), through: Through = (), level: TokenLevel = TokenLevel.VISIBLE
) -> WantedView:
    wanted = {"level": level, "sinks": _names(sinks), "through": _names(through)}
    try:
        return VIEW.validate_python(wanted)
    except ValidationError as error:
        errors = [
            {
                "message": each["msg"].removeprefix("Value error, "),
                "path": ".".join(["query", *map(str, each["loc"][:1])]),
            }
            for each in error.errors()
        ]
        said = f"{errors[0]['path']}: {errors[0]['message']}"
        raise Refusal(Slug.INVALID, said, errors=errors) from error


View = Annotated[WantedView, Depends(_view)]


def tokens_router(tokens: Tokens, *, query_bytes_max: int) -> APIRouter:
    router = APIRouter(prefix="/v1/tokens", tags=["tokens"])
    begin_outcomes()

    @router.get(
        "/{token}",
        summary="The outcome of a token: now, after a wait, or as a stream of events",
        response_model=Outcome,
        responses=OUTCOME_ANSWERS,
    )
    async def get_token(request: Request, token: str, wanted: View, wait: Wait = 0) -> Response:
        """Return the outcome: `complete`, `dead_lettered` and `lost` are final. With `wait` the
        answer comes as soon as the outcome is final; with `Accept: text/event-stream` each change
        is an event, up to the final one. `dead` has 1,000 entries at most."""
        if len(token) > PATH_TOKEN_CHARACTERS_MAX:
            detail = f"a token of {len(token)} characters is asked by POST /v1/tokens/query"
            raise Refusal(Slug.TOKEN_TOO_LONG, detail)
        opened = tokens.open(caller(request).tenant, token)
        (asked,) = await tokens.settle(caller(request), [opened], wanted)
        if isinstance(asked, Refusal):
            raise asked
        if EVENT_STREAM in request.headers.get("accept", ""):
            last_event = request.headers.get("last-event-id", "")
            return await _stream(tokens.follow(opened, asked), last_event)
        if wait > 0:
            began = time.perf_counter()
            waited = await tokens.wait(opened, wait, asked)
            waited_s = time.perf_counter() - began
            measure_wait(waited, waited_s)
            return _outcome(tokens, opened, waited, asked)
        (outcome,) = await tokens.now([opened], asked)
        if isinstance(outcome, Refusal):
            raise outcome
        return _outcome(tokens, opened, outcome, asked)

    @router.post(
        "/query",
        summary="The outcomes of many tokens, or of long ones: now, or when all are final",
        response_model=QueryAnswer,
        responses=QUERY_REFUSALS,
        openapi_extra=body_as(QueryBody),
    )
    async def query(request: Request, wait: Wait = 0) -> Response:
        """Return the outcomes in the order of the tokens; in place of one there may be an `error`,
        which is a problem. Each pipeline is read once. `dead` has 1,000 entries at most in one
        outcome, and 10,000 in all."""
        wanted = await _read_query(request, query_bytes_max)
        opened = [_open(tokens, caller(request), text) for text in wanted.tokens]
        genuine = [each for each in opened if isinstance(each, Token)]
        views = await tokens.settle(caller(request), genuine, wanted.view)
        outcomes = iter(await _answers(tokens, genuine, views, wait))
        answers = [next(outcomes) if isinstance(each, Token) else each for each in opened]
        answer = QueryAnswer(outcomes=[_entry(answer) for answer in _shorten(answers)])
        return Response(answer.model_dump_json(), media_type="application/json")

    return router


def outcome_json(outcome: Outcome) -> dict[str, JsonValue]:
    """Return the outcome as an answer has it."""
    shown: dict[str, JsonValue] = OUTCOME.dump_python(outcome, mode="json")
    return shown


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for text in given for name in text.split(","))


def _no_such_sink(tokens: Tokens, token: Token, asked: TokenView) -> Refusal:
    known = sorted(tokens.sinks_of(token))
    message = f"the token, or a part of it, waits for none of {', '.join(asked.sinks):.300}"
    if set(asked.sinks) & set(known):
        message = f"the token waits for some of {', '.join(asked.sinks):.300}, and not for all"
    hint = f"each part must wait for one at least; those that it may wait for: {', '.join(known)}"
    return invalid("sinks", message, hint=hint)


async def _answers(
    tokens: Tokens, genuine: Sequence[Token], views: Sequence[TokenView | Refusal], wait_s: float
) -> list[Outcome | Refusal]:
    """Wait for tokens together if the same is asked of them."""
    until = time.monotonic() + wait_s
    answers: dict[int, Outcome | Refusal] = {}
    asked: dict[TokenView, list[int]] = {}
    for place, view in enumerate(views):
        if isinstance(view, Refusal):
            answers[place] = view
        else:
            asked.setdefault(view, []).append(place)
    for view, places in asked.items():
        left_s = max(0.0, until - time.monotonic())
        found = await tokens.wait_for_all([genuine[place] for place in places], left_s, view)
        for place, outcome in zip(places, found, strict=True):
            wrong = isinstance(outcome, Outcome) and is_refused(outcome, view)
            answers[place] = _no_such_sink(tokens, genuine[place], view) if wrong else outcome
    return [answers[place] for place in range(len(views))]


def _outcome(tokens: Tokens, token: Token, outcome: Outcome, asked: TokenView) -> Response:
    if is_refused(outcome, asked):
        raise _no_such_sink(tokens, token, asked)
    count_outcome(outcome)
    if outcome.outcome != OutcomeKind.UNKNOWN:
        return Response(OUTCOME.dump_json(outcome), media_type="application/json")
    detail = f"nobody can judge the token now: {outcome.reason}"
    raise Refusal(Slug.OUTCOME_UNKNOWN, detail, **outcome_json(outcome))


async def _stream(changes: AsyncIterator[Change | None], last_event: str) -> Response:
    """Wait for the first change here, so that a refusal is still an ordinary answer."""
    first = await anext(changes)

    async def events() -> AsyncGenerator[bytes, None]:
        digest = last_event.rpartition(".")[2]
        change: Change | None = first
        while True:
            if change is None:
                yield KEEPALIVE_COMMENT
            else:
                before, event = digest, _event(change)
                digest = event.digest
                if digest != before:
                    count_outcome(change.outcome)
                    yield event.text
            try:
                change = await anext(changes)
            except StopAsyncIteration:
                return

    return EventStream(events())


def _event(change: Change) -> _Event:
    """Write the event once, for all who receive the same change."""
    event = _events.get(change)
    if event is None:
        data = OUTCOME.dump_json(change.outcome)
        digest = f"{zlib.crc32(data):08x}"
        own = f"{change.version}.{digest}"
        text = format_sse_event(event="outcome", data_str=data.decode(), id=own)
        event = _events[change] = _Event(digest=digest, text=text)
    return event


async def _read_query(request: Request, bytes_max: int) -> QueryBody:
    raw = await read_body(request, bytes_max=bytes_max)
    query = body_of(QueryBody, raw)
    asked = query.tokens
    if len(asked) > TOKENS_MAX:
        detail = f"{len(asked)} tokens in one query, {TOKENS_MAX} is the most: ask in parts"
        raise Refusal(Slug.TOO_MANY_TOKENS, detail, tokens_max=TOKENS_MAX)
    if any(len(text) > CHARACTERS_MAX for text in asked):
        detail = f"no token has more than {CHARACTERS_MAX} characters"
        raise Refusal(Slug.TOKEN_TOO_LONG, detail)
    return query


def _open(tokens: Tokens, asking: Caller, text: str) -> Token | Refusal:
    try:
        return tokens.open(asking.tenant, text)
    except Refusal as refusal:
        return refusal


def _shorten(answers: Iterable[Outcome | Refusal]) -> Iterator[Outcome | Refusal]:
    """Yield the answers with at most DEAD_MAX dead letters: those of the first tokens."""
    left = DEAD_MAX
    for answer in answers:
        if isinstance(answer, Outcome):
            shorter = with_less_dead(answer, left)
            left -= len(shorter.dead)
            yield shorter
        else:
            yield answer


def _entry(answer: Outcome | Refusal) -> Outcome | TokenError:
    if isinstance(answer, Refusal):
        return TokenError(error=problem_body(answer))
    count_outcome(answer)
    return answer
