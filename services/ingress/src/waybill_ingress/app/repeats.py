"""Carries out a request once, however often it is sent. Promise: whoever repeats a request with its
key gets the answer that stands in the log, and that exists if and only if what was written does.

A claim says in whose transaction the answer will stand. Who takes a claim over begins with that
transactional id first: then the other can answer no more, and what it had answered is known.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from waybill_ingress.app.measuring import count_keyed
from waybill_ingress.app.ports import Log
from waybill_ingress.core.keys import KeyedRequest
from waybill_ingress.core.requests import HeldKey, Place
from waybill_shared.contract.errors import Refusal, Retryable, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.requests import NOBODY, RequestAnswer, RequestClaim
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3


class NotDone(Retryable):
    """Nobody knows whether a transaction was committed: the log will tell."""


class Aborted(NotDone):
    """Nothing of a transaction counts, and no other will come of its producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer of HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    replayed: bool = False


BEGUN: Final = HttpAnswer(status=0, headers={}, body=b"")
"""In place of the answer, as long as an operation is only begun."""


class Draws(Protocol):
    """The clock and the dice of this process."""

    def now_ms(self) -> int: ...

    def nonce(self) -> str:
        """What was never given before."""
        ...


class RequestLog(Protocol):
    """The log of claims and answers, and what is known of it. Each call may raise Retryable."""

    def held(self, who: str) -> HeldKey | None:
        """What was known of the key a moment ago."""
        ...

    def forgets_before(self) -> int:
        """Claims that are older are not known here."""
        ...

    async def claim(self, claim: RequestClaim) -> HeldKey | None:
        """Put it into the log; who has the key then."""
        ...

    async def settle(self, held: HeldKey) -> None:
        """Shut out who has claimed it; then all that it has ever answered is known here."""
        ...

    async def answer(self, place: Place) -> RequestAnswer: ...

    def note(self, answer: RequestAnswer, place: Place) -> None:
        """It stands there, by what this process has heard of its own transaction."""
        ...


class Transaction(Protocol):
    """Of a producer that lives until one of its transactions is not committed."""

    @property
    def id(self) -> str: ...

    async def carry_out(
        self, action: Callable[[Log], Awaitable[RequestAnswer]]
    ) -> tuple[RequestAnswer, Place]:
        """What it writes to the log that it is given counts with its answer, or not at all. Raises
        what `action` raises, and nothing counts; NotDone or Aborted, also for what another one of
        the same transaction has done."""
        ...


class Transactions(Protocol):
    async def next(self) -> Transaction:
        """One that is not used up. Retryable."""
        ...


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
        self._given_up: set[str] = set()
        """Claims of this process that nobody carries out any more."""
        self._over: set[str] = set()
        """Those of them that can have no answer."""

    async def once(
        self, wanted: KeyedRequest, act: Callable[[Log], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """All that it does is to write to that log."""

        async def carry_out(turn: Turn) -> HttpAnswer:
            return await self._answer(turn, act)

        return await self._turns(wanted, carry_out)

    async def once_by_id(
        self, wanted: KeyedRequest, act: Callable[[str], Awaitable[HttpAnswer]]
    ) -> HttpAnswer:
        """It finds out by itself what was done for the id that it is given."""

        async def carry_out(turn: Turn) -> HttpAnswer:
            turn.keeps = True
            try:
                said = await act(turn.claim.root)
            except (Refusal, UserError):
                turn.keeps = False
                raise
            return await self._answer(turn, _at_hand(said))

        return await self._turns(wanted, carry_out)

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

    async def _turns(self, wanted: KeyedRequest, carry_out: CarryOut) -> HttpAnswer:
        """Another turn follows one of which it is not known here what has become of it."""
        for left in reversed(range(ATTEMPTS)):
            held = await self._found(wanted)
            if held is not None and held.place is not None:
                said = await self._requests.answer(held.place)
                count_keyed("repeated")
                return _repeated(said)
            turn = await self._claimed(wanted, held)
            if turn is None:
                continue
            try:
                return await self._carried_out(turn, carry_out)
            except NotDone:
                if not left:
                    raise
        raise _running()

    async def _found(self, wanted: KeyedRequest) -> HeldKey | None:
        """Who has the key, with an answer or shut out."""
        held = self._requests.held(wanted.who)
        if held is None:
            return None
        if held.request != wanted.request:
            raise _reused()
        if held.place is None:
            if held.id not in self._given_up and (
                held.id in self._mine or self._draws.now_ms() - held.at < self._patience_ms
            ):
                raise _running()
            if held.id not in self._over:
                await self._requests.settle(held)
            self._given_up.discard(held.id)
            self._over.discard(held.id)
            settled = self._requests.held(wanted.who)
            if settled is not None and settled.id != held.id:
                raise _running()
            return settled
        return held

    async def _claimed(self, wanted: KeyedRequest, before: HeldKey | None) -> Turn | None:
        """None if somebody else was first."""
        transaction = await self._transactions.next()
        own = self._draws.nonce()
        claim = RequestClaim(
            id=own,
            who=wanted.who,
            request=wanted.request,
            at=self._draws.now_ms(),
            transactional_id=transaction.id,
            after=before.id if before is not None else NOBODY,
            root=before.root if before is not None else own,
            begun=before.begun if before is not None else NOBODY,
            forgets_before=self._requests.forgets_before(),
        )
        self._mine.add(own)
        try:
            held = await self._requests.claim(claim)
        except Retryable:
            self._give_up(claim)
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
            self._give_up(turn.claim)
            if isinstance(error, Aborted):
                self._over.add(turn.claim.id)
            raise
        except Exception:
            await self._give_back(turn)
            raise
        except BaseException:  # nobody waits for it any more
            self._give_up(turn.claim)
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
        self._give_up(turn.claim)

    def _give_up(self, claim: RequestClaim) -> None:
        self._mine.discard(claim.id)
        self._given_up.add(claim.id)


def _at_hand(said: HttpAnswer) -> Callable[[Log], Awaitable[HttpAnswer]]:
    async def say(_: Log) -> HttpAnswer:
        return said

    return say


def _repeated(answer: RequestAnswer) -> HttpAnswer:
    return HttpAnswer(status=answer.status, headers=answer.headers, body=answer.body, replayed=True)


def _reused() -> Refusal:
    count_keyed("reused")
    hint = "a key stands for one request: take another one, or send exactly what was sent first"
    detail = "another request was sent with this Idempotency-Key: its method, path or body differs"
    return Refusal(Slug.KEY_REUSED, detail, hint=hint)


def _running() -> Refusal:
    count_keyed("running")
    detail = "a request with this Idempotency-Key is still being carried out"
    return Refusal(Slug.REQUEST_RUNNING, detail, hint="send it again in a moment")
