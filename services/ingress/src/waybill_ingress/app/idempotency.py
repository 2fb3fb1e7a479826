"""Carries out a request with an Idempotency-Key once, however often it is sent.

Promise: whoever repeats a request with its key gets the answer that is in the log. That answer
exists if and only if what the request wrote exists. It works in this order.

1. Find (`_find`): the log of claims says who owns the key. If its claim has an answer, that is the
answer to this request. A key that a different request used is refused, unless that request left
nothing. A claim without an answer that is being carried out, here or elsewhere, is refused as
running: try again.

2. Take over: if the owner has given up, or its claim is too old, its transactional id is claimed
first (`settle`). Kafka then fences the old owner, so it can answer no more. All answers are read,
and it is known whether it had answered.

3. Claim (`_claim`): write a claim with the transactional id of the transaction in which the
answer will be. It names the claim that it follows. The first such claim in the log owns the key;
all others look again.

4. Carry out (`_carry_out`): the request writes into that transaction, and so does its answer.
They are committed together.

5. If the request fails before anything counts, the key is released. If the end of the transaction
is not known, the claim is given up, and the next attempt finds out by steps 1 and 2.

Kafka may refuse a record, which spoils the transaction for all requests in it. For ten minutes,
requests to the same path then run apart, one after the other.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from waybill_ingress.app.idempotency_answers import (
    key_reused,
    ready,
    repeat_answer,
    still_running,
)
from waybill_ingress.app.idempotency_ports import (
    STARTED,
    Aborted,
    Draws,
    HttpAnswer,
    NotDone,
    OwnedClaim,
    RequestLog,
    Transactions,
)
from waybill_ingress.app.measuring import count_keyed
from waybill_ingress.app.ports import Log
from waybill_ingress.app.remembering import remember
from waybill_ingress.core.keys import KeyedRequest
from waybill_ingress.core.requests import OwnedKey
from waybill_shared.contract.errors import Refusal, Retryable, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.requests import BY_ID, NOBODY, RequestAnswer, RequestClaim
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 5
APART_MS: Final = 600_000  # for so long, requests of a path that spoilt a transaction run apart
WAITING_APART_MAX: Final = 100


CarryOut = Callable[[OwnedClaim], Awaitable[HttpAnswer]]


class IdempotentRequests:
    def __init__(
        self, requests: RequestLog, transactions: Transactions, draws: Draws, *, patience_ms: int
    ) -> None:
        """Keep the ports. `patience_ms`: for so long a claim of another process is respected."""
        self._requests = requests
        self._transactions = transactions
        self._draws = draws
        self._patience_ms = patience_ms
        self._mine: set[str] = set()
        """Claims that are being carried out here."""
        self._given_up: dict[str, bool] = {}
        """Claims of this process that nobody carries out any more. True: it can have no answer. A
        forgotten one is examined again.
        """
        self._apart: dict[str, int] = {}
        """Paths that have spoilt a transaction, and until when their requests run apart."""
        self._one_apart = asyncio.Lock()
        self._waiting_apart = 0

    async def once(
        self, wanted: KeyedRequest, act: Callable[[Log], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """Carry out a request that does nothing but write to the log it gets."""

        async def carry_out(owned: OwnedClaim) -> HttpAnswer:
            return await self._answer(owned, act)

        return await self._try(wanted, carry_out)

    async def once_by_id(
        self, wanted: KeyedRequest, act: Callable[[str, bool], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """Carry out a request that has effects outside of its transaction.

        `act` gets the id of the request, and True if an earlier attempt may have done something for
        it. It finds out itself what that is.
        """

        async def carry_out(owned: OwnedClaim) -> HttpAnswer:
            owned.keeps = True
            resumed = owned.claim.root != owned.claim.id
            try:
                said = await act(owned.claim.root, resumed)
            except (Refusal, UserError):
                owned.keeps = resumed  # what an earlier attempt has done is not known here
                raise
            return await self._answer(owned, ready(said))

        return await self._try(wanted, carry_out, operation=BY_ID)

    async def operation(
        self,
        wanted: KeyedRequest,
        begin: Callable[[Log], Awaitable[str]],
        answer: Callable[[str], Awaitable[HttpAnswer]],
        prepare: Callable[[], Awaitable[None]],
    ) -> HttpAnswer:
        """Start an operation once. `answer` waits for its end, and refuses nothing. `prepare` is
        awaited before `begin`, outside of its transaction, and may be repeated.
        """

        async def carry_out(owned: OwnedClaim) -> HttpAnswer:
            operation = owned.claim.operation
            if not operation:
                await prepare()
                operation = await self._begin(owned, begin)
            owned.keeps = True
            return await self._answer(owned, ready(await answer(operation)), operation)

        return await self._try(wanted, carry_out)

    async def _try(
        self, wanted: KeyedRequest, carry_out: CarryOut, operation: str = NOBODY
    ) -> HttpAnswer:
        """Run attempts until one has an answer. `operation` is noted in the first claim.

        Another attempt follows one with an end that is not known here.
        """
        for left in reversed(range(ATTEMPTS)):
            async with self._alone(wanted.where) as apart:
                known = await self._find(wanted)
                if known is not None and known.place is not None:
                    answer = await self._requests.answer(known)
                    count_keyed("repeated")
                    return repeat_answer(answer)
                owned = await self._claim(wanted, known, operation, apart=apart)
                if owned is None:
                    continue
                try:
                    return await self._carry_out(owned, carry_out)
                except NotDone:
                    if not left:
                        raise
                except Refusal as refusal:
                    if refusal.slug is Slug.RECORDS_REFUSED_BY_KAFKA:
                        self._keep_apart(wanted.where)
                    raise
        raise still_running()

    @asynccontextmanager
    async def _alone(self, where: str) -> AsyncIterator[bool]:
        """Yield True if requests to that path may spoil a transaction for others.

        Such a request waits until it is the only one of its sort.
        """
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

    async def _find(self, wanted: KeyedRequest) -> OwnedKey | None:
        """Return the owner of the key: it has an answer, or is fenced. Raises Refusal."""
        owned = self._requests.owner(wanted.who)
        if owned is not None and owned.request == wanted.request and self._is_elsewhere(owned):
            owned = await self._requests.await_owner(wanted.who, owned)
        if owned is None:
            return None
        same = owned.request == wanted.request
        if owned.place is None:
            if self._is_carried_out(owned):
                raise still_running() if same else key_reused()
            if not self._given_up.get(owned.id):
                await self._requests.settle(owned)
            settled = self._requests.owner(wanted.who)
            if settled is not None and settled.id != owned.id:
                return await self._find(wanted)  # somebody else owns it now
            owned = settled
        if owned is not None and not same and (owned.place is not None or owned.operation):
            raise key_reused()
        return owned

    def _is_elsewhere(self, owned: OwnedKey) -> bool:
        """Return True if another process carries it out, as far as is known here."""
        open_there = owned.place is None and owned.id not in self._mine
        return open_there and self._is_carried_out(owned)

    def _is_carried_out(self, owned: OwnedKey) -> bool:
        """Return True if the claim is being carried out, as far as is known here.

        A claim is never made later than it is read. If it seems so, the clock was set back, and its
        age says nothing.
        """
        if owned.id in self._given_up:
            return False
        age_ms = self._draws.now_ms() - owned.at
        return owned.id in self._mine or 0 <= age_ms < self._patience_ms

    async def _claim(
        self, wanted: KeyedRequest, before: OwnedKey | None, operation: str, *, apart: bool
    ) -> OwnedClaim | None:
        """Claim the key. Return None if somebody else was first."""
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
            operation=before.operation if before is not None and before.operation else operation,
            forgets_before=self._requests.forgets_before(),
        )
        self._mine.add(own)
        try:
            owned = await self._requests.claim(claim)
        except BaseException:
            self._give_up(claim, over=True)
            raise
        if owned is None or owned.id != own:
            self._mine.discard(own)
            return None
        reach("request.claimed")
        return OwnedClaim(claim=claim, transaction=transaction)

    async def _carry_out(self, owned: OwnedClaim, carry_out: CarryOut) -> HttpAnswer:
        try:
            said = await carry_out(owned)
        except NotDone as error:
            self._give_up(owned.claim, over=isinstance(error, Aborted))
            raise
        except Exception:
            await self._give_back(owned)
            raise
        except BaseException:  # nobody waits for it any more
            self._give_up(owned.claim, over=False)
            raise
        self._mine.discard(owned.claim.id)
        count_keyed("carried_out")
        return said

    async def _begin(self, owned: OwnedClaim, begin: Callable[[Log], Awaitable[str]]) -> str:
        async def act(log: Log) -> RequestAnswer:
            return self._answer_of(owned.claim, operation=await begin(log))

        answer, place = await owned.transaction.carry_out(act)
        self._requests.note(answer, place)
        return answer.operation

    async def _answer(
        self,
        owned: OwnedClaim,
        say: Callable[[Log], Awaitable[HttpAnswer]],
        operation: str = NOBODY,
    ) -> HttpAnswer:
        async def act(log: Log) -> RequestAnswer:
            return self._answer_of(owned.claim, operation=operation, said=await say(log))

        answer, place = await owned.transaction.carry_out(act)
        self._requests.note(answer, place)
        return HttpAnswer(status=answer.status, headers=answer.headers, body=answer.body)

    def _answer_of(
        self, claim: RequestClaim, *, operation: str, said: HttpAnswer = STARTED
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

    async def _give_back(self, owned: OwnedClaim) -> None:
        """Release the key: nothing counts, and the next request with it is the first."""
        if not owned.keeps:
            try:
                await self._requests.claim(replace(owned.claim, released=True))
            except Retryable as error:
                logger.warning("a key is not given back", extra={"reason": str(error)})
            else:
                self._mine.discard(owned.claim.id)
                return
        self._give_up(owned.claim, over=True)

    def _keep_apart(self, where: str) -> None:
        remember(self._apart, where, self._draws.now_ms() + APART_MS)

    def _give_up(self, claim: RequestClaim, *, over: bool) -> None:
        self._mine.discard(claim.id)
        remember(self._given_up, claim.id, over)
