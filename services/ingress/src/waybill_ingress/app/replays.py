"""Replays dead letters in the stages where they died.

Promise: each is replayed once, whatever crashes and whoever asks at the same time, unless it is
asked for with `again`. The token is for exactly those that were asked for.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from waybill_ingress.app.measuring import count_token
from waybill_ingress.app.ports import SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.dead_letters import (
    BYTES_MAX,
    Found,
    FoundDeadLetter,
    find_aged,
    letters_of,
    read_ids,
)
from waybill_ingress.core.edits import RecordEdit, with_edit
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.replays import Plan, answer_to, parts_of, plan, replayed_letter
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import LetterReplay, Replay, ReplayedLetter, ReplayPosition
from waybill_shared.contract.topology import Topology


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

    async def send(self, letters: Sequence[LetterReplay]) -> Sequence[ReplayPosition]:
        """Start a transaction and write a message for each. Return their positions."""

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
class ReplayReceipt:
    """How many letters are replayed now, and how many were before. `sinks`: the names of those that
    get a record.
    """

    token: str
    replayed: int
    already: int
    sinks: tuple[str, ...]


def receipt_of(record: PipelineRecord, answer: Replay) -> ReplayReceipt:
    """Return the receipt as it was given, or would have been."""
    replayed = sum(each.at == answer.at for each in answer.letters)
    already = len(answer.letters) - replayed
    sinks = names_of(record, (key for each in answer.letters for key in each.sinks))
    return ReplayReceipt(token=answer.token, replayed=replayed, already=already, sinks=sinks)


def names_of(record: PipelineRecord, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the names of sinks, each with that of its stage. Keys have the first names: those of
    sinks that are gone by now are all that is known of them.
    """
    sinks = Topology(record.stages).sinks
    now = {each.key: f"{each.stage.name}/{each.sink.name}" for each in sinks}
    return tuple(sorted({now.get(key, key.rpartition("@")[0]) for key in keys}))


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
        confirmed: bool = False,
        edit: RecordEdit | None = None,
        request_id: str,
        resumed: bool = False,
        demand: Demand | None = None,
    ) -> ReplayReceipt:
        """Replay the letters and return a token for them.

        `confirmed`: also where old rows may take the place of newer ones. `edit`: what is changed
        of the record of the only letter. `resumed`: an earlier attempt of this request may have an
        answer; then that is returned.
        """
        record = await self._registry.pipeline(caller.tenant, pipeline, demand)
        if resumed and (mine := await self._find_answer(record, request_id)) is not None:
            return receipt_of(record, mine)
        places = read_ids(ids)
        found = await self._letters.read(list(dict.fromkeys(places)), bytes_max=BYTES_MAX)
        letters = letters_of(record, places, found, now_ms=self._mint.now_ms())
        if edit is not None:
            letters = [_edit(record, each, found, edit) for each in letters]
        async with self._log.transaction(record.tenant, record.pipeline_uid) as transaction:
            answers = await transaction.read()
            planned = plan(letters, answers, again=again, now_ms=self._mint.now_ms())
            if not confirmed:
                _refuse_unconfirmed(record, planned)
            answer = await self._answer(transaction, record, planned, request_id)
        count_token("replay")
        return ReplayReceipt(
            token=answer.token,
            replayed=len(planned.fresh),
            already=len(planned.kept),
            sinks=names_of(record, (key for each in answer.letters for key in each.sinks)),
        )

    async def _find_answer(self, record: PipelineRecord, request_id: str) -> Replay | None:
        """Return the answer to that request, if any. An earlier attempt is fenced by this."""
        async with self._log.transaction(record.tenant, record.pipeline_uid) as transaction:
            return answer_to(request_id, await transaction.read())

    async def _answer(
        self,
        transaction: ReplayTransaction,
        record: PipelineRecord,
        planned: Plan,
        request_id: str,
    ) -> Replay:
        """Return the answer with the token. It is committed, unless it was before."""
        positions = await transaction.send(planned.fresh) if planned.token is None else ()
        sent = [
            replayed_letter(each, position, generation=record.generation)
            for each, position in zip(planned.fresh, positions, strict=True)
        ]
        letters = (*planned.kept, *sent)
        answer = Replay(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            at=planned.fresh[0].at if planned.fresh else self._mint.now_ms(),
            request_id=request_id,
            token=planned.token or self._seal(record, letters),
            letters=letters,
        )
        if planned.token is None:
            await transaction.conclude(answer)
        return answer

    def _seal(self, record: PipelineRecord, letters: Sequence[ReplayedLetter]) -> str:
        return self._mint.seal(
            parts_of(record, letters),
            tenant=record.tenant,
            oldest_at=min(each.at for each in letters),
        ).token


def _edit(
    record: PipelineRecord, asked: LetterReplay, found: Found, edit: RecordEdit
) -> LetterReplay:
    letter = found[asked.letter]
    assert isinstance(letter, FoundDeadLetter), "others were refused"
    return with_edit(record, asked, letter, edit)


def _refuse_unconfirmed(record: PipelineRecord, planned: Plan) -> None:
    aged = find_aged(record, planned.fresh)
    if aged:
        detail = f"an old row may take the place of a newer one in {', '.join(aged)}"
        hint = "set orderBy there, so that the newer one stays; or confirm it with `yes: true`"
        raise Refusal(Slug.REPLAY_NOT_CONFIRMED, detail, hint=hint, sinks=list(aged))
