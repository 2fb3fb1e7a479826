"""Sends dead letters to their topics again.

Promise: each is sent once, whatever crashes and whoever asks at the same time, unless it is asked
for with `again`. The token is for exactly those that were asked for.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from waybill_ingress.app.measuring import count_token
from waybill_ingress.app.ports import SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.dead_letters import (
    BYTES_MAX,
    Found,
    Resent,
    inputs_of,
    read_ids,
    refuse_recreated,
    resent_of,
)
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.replays import Plan, answer_to, parts_of, plan, record_of
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import Replay


class DeadLetterLookup(Protocol):
    async def read(self, places: Sequence[LetterId], *, bytes_max: int) -> Found:
        """Return what is at these positions, as a reader of committed records gets it.

        Raises Retryable, and Refusal if they have more than `bytes_max`.
        """


class ReplayTransaction(Protocol):
    """The exclusive right to replay dead letters of a pipeline, for one transaction.

    Each call raises Retryable, also if another process has got the right meanwhile.
    """

    async def read(self) -> Sequence[Replay]:
        """Return all answers that were ever committed for the pipeline, in their order."""

    async def send(self, records: Sequence[Resent]) -> Sequence[tuple[int, int]]:
        """Start a transaction and write these. Return partition and offset of each.

        Raises Refusal for a record that its topic never accepts.
        """

    async def conclude(self, answer: Replay) -> None:
        """Commit with the answer. After Retryable nobody knows whether it is committed."""


class ReplayLog(Protocol):
    def transaction(
        self, tenant: str, pipeline_uid: str
    ) -> AbstractAsyncContextManager[ReplayTransaction]:
        """Get the exclusive right for that pipeline. The earlier owner is fenced, and what it has
        not committed is aborted.

        What is not committed at the end does not count.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    pipeline: PipelineRecord
    resent: Sequence[Resent]
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReceipt:
    """How many records were sent, and how many had been sent before."""

    token: str
    replayed: int
    already: int


def receipt_of(answer: Replay) -> ReplayReceipt:
    """Return the receipt as it was given, or would have been."""
    replayed = sum(record.at == answer.at for record in answer.records)
    already = len(answer.records) - replayed
    return ReplayReceipt(token=answer.token, replayed=replayed, already=already)


class Replays:
    def __init__(
        self,
        registry: Registry,
        letters: DeadLetterLookup,
        log: ReplayLog,
        mint: SealingClock,
    ) -> None:
        self._registry = registry
        self._letters = letters
        self._log = log
        self._mint = mint

    async def replay(
        self,
        caller: Caller,
        pipeline: str,
        ids: Sequence[str],
        *,
        again: bool,
        request_id: str,
        resumed: bool = False,
        demand: Demand | None = None,
    ) -> ReplayReceipt:
        """Send the letters and return a token for them.

        `resumed`: an earlier attempt of this request may have an answer; then that is returned.
        """
        record = await self._registry.pipeline(caller.tenant, pipeline, demand)
        if resumed and (mine := await self._find_answer(record, request_id)) is not None:
            return receipt_of(mine)
        places = read_ids(ids)
        found = await self._letters.read(list(dict.fromkeys(places)), bytes_max=BYTES_MAX)
        resent = resent_of(record, places, found)
        async with self._log.transaction(record.tenant, record.pipeline_uid) as transaction:
            answers = await transaction.read()
            planned = plan(resent, answers, again=again, now_ms=self._mint.now_ms())
            asked = _Asked(pipeline=record, resent=resent, request_id=request_id)
            token = planned.token or await self._answer(transaction, asked, planned)
        count_token("replay")
        return ReplayReceipt(token=token, replayed=len(planned.fresh), already=len(planned.kept))

    async def _find_answer(self, record: PipelineRecord, request_id: str) -> Replay | None:
        """Return the answer to that request, if any. An earlier attempt is fenced by this."""
        async with self._log.transaction(record.tenant, record.pipeline_uid) as transaction:
            return answer_to(request_id, await transaction.read())

    async def _answer(self, transaction: ReplayTransaction, asked: _Asked, planned: Plan) -> str:
        record = asked.pipeline
        await self._check_topics(asked, planned)
        places = await transaction.send(planned.fresh)
        await self._check_topics(asked, planned)
        now_ms, generation = self._mint.now_ms(), record.generation
        sent = [
            record_of(each, place, generation=generation, now_ms=now_ms)
            for each, place in zip(planned.fresh, places, strict=True)
        ]
        records = (*planned.kept, *sent)
        token = self._mint.seal(
            parts_of(record, records),
            tenant=record.tenant,
            oldest_at=min(each.at for each in records),
        ).token
        answer = Replay(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            at=now_ms,
            request_id=asked.request_id,
            token=token,
            records=records,
        )
        await transaction.conclude(answer)
        return token

    async def _check_topics(self, asked: _Asked, planned: Plan) -> None:
        """Check that the topics are the ones that the pipeline reads. Raises Refusal.

        It is done before and after the write, so each was the same topic all the time. What was
        written to another one does not count, because nothing is committed yet.
        """
        for source in inputs_of(asked.pipeline, planned.fresh):
            try:
                await self._registry.present(asked.pipeline, source, fresh=True)
            except Refusal as refusal:
                if refusal.slug is not Slug.TOPIC_RECREATED:
                    raise
                refuse_recreated(asked.resent, source, refusal.detail)
