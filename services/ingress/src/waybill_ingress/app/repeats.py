"""Carries out a request once, however often it is sent. Promise: whoever repeats a request with its
key gets the answer that stands in the log, and that exists if and only if what was written does.

A claim says in whose transaction the answer will stand. Who takes a claim over begins with that
transactional id first: then the other can answer no more, and what it had answered is known.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from waybill_ingress.app.measuring import count_keyed
from waybill_ingress.app.ports import Log
from waybill_ingress.app.repeat_ports import (
    BEGUN,
    Aborted,
    Draws,
    HttpAnswer,
    NotDone,
    RequestLog,
    Transaction,
    Transactions,
)
from waybill_ingress.core.keys import KeyedRequest
from waybill_ingress.core.requests import HeldKey
from waybill_shared.contract.errors import Refusal, Retryable, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.requests import BY_ID, NOBODY, RequestAnswer, RequestClaim
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)
T = TypeVar("T")

ATTEMPTS: Final = 5
APART_MS: Final = 600_000  # so long requests of a path that spoilt a transaction have their own
REMEMBERED_MAX: Final = 10_000
WAITING_APART_MAX: Final = 100


@dataclass(slots=True, kw_only=True)
class Turn:
    """Of whoever has the key."""

    claim: RequestClaim
    transaction: Transaction
    keeps: bool = False
    """Something has been done that counts, or may: the key is not given back without an answer."""


CarryOut = Callable[[Turn], Awaitable[HttpAnswer]]


class Repeats:
    def __init__(
        self, requests: RequestLog, transactions: Transactions, draws: Draws, *, patience_ms: int
    ) -> None:
        """`patience_ms`: so long a claim of another process is left alone."""
        self._requests = requests
        self._transactions = transactions
        self._draws = draws
        self._patience_ms = patience_ms
        self._mine: set[str] = set()
        """Claims that are being carried out here."""
        self._given_up: dict[str, bool] = {}
        """Claims of this process that nobody carries out any more, and whether it is known that it
        can have no answer. What is forgotten here is found out again."""
        self._apart: dict[str, int] = {}
        """Inputs whose requests have spoilt a transaction, and until when they are kept apart."""
        self._one_apart = asyncio.Lock()
        self._waiting_apart = 0

    async def once(
        self, wanted: KeyedRequest, act: Callable[[Log], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """All that it does is to write to that log."""

        async def carry_out(turn: Turn) -> HttpAnswer:
            return await self._answer(turn, act)

        return await self._turns(wanted, carry_out)

    async def once_by_id(
        self, wanted: KeyedRequest, act: Callable[[str, bool], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """It is given the id of the request, and whether something may have been done for it: what
        that is, it finds out by itself."""

        async def carry_out(turn: Turn) -> HttpAnswer:
            turn.keeps = True
            taken_over = turn.claim.root != turn.claim.id
            try:
                said = await act(turn.claim.root, taken_over)
            except (Refusal, UserError):
                turn.keeps = taken_over  # what an earlier one has done is not known here
                raise
            return await self._answer(turn, _at_hand(said))

        return await self._turns(wanted, carry_out, begun=BY_ID)

    async def operation(
        self,
        wanted: KeyedRequest,
        begin: Callable[[Log], Awaitable[str]],
        answer: Callable[[str], Awaitable[HttpAnswer]],
    ) -> HttpAnswer:
        """An operation is begun once; `answer` waits for its end, and refuses nothing."""

        async def carry_out(turn: Turn) -> HttpAnswer:
            operation = turn.claim.begun or await self._begin(turn, begin)
            turn.keeps = True
            return await self._answer(turn, _at_hand(await answer(operation)), operation)

        return await self._turns(wanted, carry_out)

    async def _turns(
        self, wanted: KeyedRequest, carry_out: CarryOut, begun: str = NOBODY
    ) -> HttpAnswer:
        """Another turn follows one of which it is not known here what has become of it. `begun`: of
        the first."""
        for left in reversed(range(ATTEMPTS)):
            async with self._alone(wanted.where) as apart:
                held = await self._found(wanted)
                if held is not None and held.place is not None:
                    said = await self._requests.answer(held)
                    count_keyed("repeated")
                    return _repeated(said)
                turn = await self._claimed(wanted, held, begun, apart=apart)
                if turn is None:
                    continue
                try:
                    return await self._carried_out(turn, carry_out)
                except NotDone:
                    if not left:
                        raise
                except Refusal as refusal:
                    if refusal.slug is Slug.RECORDS_REFUSED_BY_KAFKA:
                        self._keep_apart(wanted.where)
                    raise
        raise _running()

    @asynccontextmanager
    async def _alone(self, where: str) -> AsyncIterator[bool]:
        """Whether a request to there may spoil a transaction for others: then it waits until it
        is the only one of those."""
        if self._apart.get(where, 0) <= self._draws.now_ms():
            yield False
            return
        if self._waiting_apart >= WAITING_APART_MAX:
            raise Retryable("too many requests wait that Kafka may refuse; try again later")
        self._waiting_apart += 1
        try:
            async with self._one_apart:
                yield True
        finally:
            self._waiting_apart -= 1

    async def _found(self, wanted: KeyedRequest) -> HeldKey | None:
        """Who has the key, with an answer or shut out."""
        held = self._requests.held(wanted.who)
        if held is not None and held.request == wanted.request and self._is_elsewhere(held):
            held = await self._requests.known_soon(wanted.who, held)
        if held is None:
            return None
        same = held.request == wanted.request
        if held.place is None:
            if self._is_carried_out(held):
                raise _running() if same else _reused()
            if not self._given_up.get(held.id):
                await self._requests.settle(held)
            settled = self._requests.held(wanted.who)
            if settled is not None and settled.id != held.id:
                return await self._found(wanted)  # somebody else has taken it over
            held = settled
        if held is not None and not same and (held.place is not None or held.begun):
            raise _reused()
        return held

    def _is_elsewhere(self, held: HeldKey) -> bool:
        """Return whether another process carries it out, for all that is known here."""
        open_there = held.place is None and held.id not in self._mine
        return open_there and self._is_carried_out(held)

    def _is_carried_out(self, held: HeldKey) -> bool:
        """For all that is known here. A claim is never of a later time than that at which it was
        read; so if it seems to be, the clock was put back, and its age says nothing."""
        if held.id in self._given_up:
            return False
        age_ms = self._draws.now_ms() - held.at
        return held.id in self._mine or 0 <= age_ms < self._patience_ms

    async def _claimed(
        self, wanted: KeyedRequest, before: HeldKey | None, begun: str, *, apart: bool
    ) -> Turn | None:
        """None if somebody else was first."""
        transaction = await self._transactions.next(apart=apart)
        own = self._draws.nonce()
        same = before is not None and before.request == wanted.request
        claim = RequestClaim(
            id=own,
            who=wanted.who,
            request=wanted.request,
            at=self._draws.now_ms(),
            transactional_id=transaction.id,
            after=before.id if before is not None else NOBODY,
            root=before.root if before is not None and same else own,
            begun=before.begun if before is not None and before.begun else begun,
            forgets_before=self._requests.forgets_before(),
        )
        self._mine.add(own)
        try:
            held = await self._requests.claim(claim)
        except BaseException:
            self._give_up(claim, over=True)
            raise
        if held is None or held.id != own:
            self._mine.discard(own)
            return None
        reach("request.claimed")
        return Turn(claim=claim, transaction=transaction)

    async def _carried_out(self, turn: Turn, carry_out: CarryOut) -> HttpAnswer:
        try:
            said = await carry_out(turn)
        except NotDone as error:
            self._give_up(turn.claim, over=isinstance(error, Aborted))
            raise
        except Exception:
            await self._give_back(turn)
            raise
        except BaseException:  # nobody waits for it any more
            self._give_up(turn.claim, over=False)
            raise
        self._mine.discard(turn.claim.id)
        count_keyed("carried_out")
        return said

    async def _begin(self, turn: Turn, begin: Callable[[Log], Awaitable[str]]) -> str:
        async def act(log: Log) -> RequestAnswer:
            return self._answer_of(turn.claim, operation=await begin(log))

        answer, place = await turn.transaction.carry_out(act)
        self._requests.note(answer, place)
        return answer.operation

    async def _answer(
        self,
        turn: Turn,
        say: Callable[[Log], Awaitable[HttpAnswer]],
        operation: str = NOBODY,
    ) -> HttpAnswer:
        async def act(log: Log) -> RequestAnswer:
            return self._answer_of(turn.claim, operation=operation, said=await say(log))

        answer, place = await turn.transaction.carry_out(act)
        self._requests.note(answer, place)
        return HttpAnswer(status=answer.status, headers=answer.headers, body=answer.body)

    def _answer_of(
        self, claim: RequestClaim, *, operation: str, said: HttpAnswer = BEGUN
    ) -> RequestAnswer:
        return RequestAnswer(
            claim=claim.id,
            who=claim.who,
            at=self._draws.now_ms(),
            operation=operation,
            status=said.status,
            headers=dict(said.headers),
            body=said.body,
        )

    async def _give_back(self, turn: Turn) -> None:
        """Nothing counts, and the next request with that key is the first."""
        if not turn.keeps:
            try:
                await self._requests.claim(replace(turn.claim, released=True))
            except Retryable as error:
                logger.warning("a key is not given back", extra={"reason": str(error)})
            else:
                self._mine.discard(turn.claim.id)
                return
        self._give_up(turn.claim, over=True)

    def _keep_apart(self, where: str) -> None:
        _remember(self._apart, where, self._draws.now_ms() + APART_MS)

    def _give_up(self, claim: RequestClaim, *, over: bool) -> None:
        self._mine.discard(claim.id)
        _remember(self._given_up, claim.id, over)


def _remember(known: dict[str, T], key: str, value: T) -> None:
    """The oldest are forgotten."""
    known.pop(key, None)
    known[key] = value
    if len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]


def _at_hand(said: HttpAnswer) -> Callable[[Log], Awaitable[HttpAnswer]]:
    async def say(_: Log) -> HttpAnswer:
        return said

    return say


def _repeated(answer: RequestAnswer) -> HttpAnswer:
    return HttpAnswer(status=answer.status, headers=answer.headers, body=answer.body, replayed=True)


def _reused() -> Refusal:
    count_keyed("reused")
    hint = "a key stands for one request: take another one, or send exactly what was sent first"
    detail = "another request was sent with this key: its method, path, query or body differs"
    return Refusal(Slug.KEY_REUSED, detail, hint=hint)


def _running() -> Refusal:
    count_keyed("running")
    detail = "a request with this Idempotency-Key is still being carried out"
    return Refusal(Slug.REQUEST_RUNNING, detail, hint="send it again in a moment")
