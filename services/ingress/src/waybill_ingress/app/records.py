"""Accepts records for an input.

Promise: a token covers exactly what Kafka has acknowledged. What it does not cover is named with
its reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Final

from waybill_ingress.app.low_offsets import LowOffsets
from waybill_ingress.app.ports import Body, Log, SealingClock, Spool, Topics
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.bodies.forms import Reader
from waybill_ingress.core.delivered_ranges import DeliveredRanges
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.inputs import row_rules
from waybill_ingress.core.rows import REJECTED_MAX, Record, Rejection, RowLimits, RowReader, RowRule
from waybill_ingress.core.token_coverage import part_of
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.vectors import Span

THREADS: Final = 2
"""Threads that read large bodies, so that small requests are answered meanwhile."""

KEY_HINT = (
    "a compacted topic accepts only records with a key: set `key` of the input in the manifest,"
    " and let no record's key be null"
)
NOT_SENT: Final = "not sent, because kafka did not accept others before it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    token: str
    accepted: int
    rejected: list[Rejection]


@dataclass(slots=True, kw_only=True)
class _Sent:
    """The fate of the records of one request. `left` were not sent: too many to name."""

    acknowledged: DeliveredRanges = field(default_factory=DeliveredRanges)
    failed: list[Rejection] = field(default_factory=list)
    refused: list[Rejection] = field(default_factory=list)
    left: int = 0
    left_from: int = 0


class Records:
    def __init__(
        self,
        registry: Registry,
        log: Log,
        topics: Topics,
        mint: SealingClock,
        limits: RowLimits,
        *,
        spool: Callable[[], Spool],
    ) -> None:
        self._registry = registry
        self._log = log
        self._topics = topics
        self._mint = mint
        self._floors = LowOffsets(topics, mint)
        self._limits = limits
        self._spool = spool
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bodies")

    async def write(
        self,
        caller: Caller,
        pipeline: str,
        input_name: str,
        body: Body,
        read: Reader,
        *,
        demand: Demand | None = None,
        atomic: bool = False,
        log: Log | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> Receipt:
        """Write the records of a body, and return the token for them.

        `atomic`: one rejected record rejects all; what Kafka has accepted by then stays. `log`:
        another log to write to, in which nothing counts if this raises. `on_start` is called before
        the first record is written.
        """
        record, source = await self._registry.input(caller.tenant, pipeline, input_name, demand)
        rule = row_rules(record.manifest)[input_name]
        with self._spool() as good:
            rejected = await self._read(body, read, rule, good, whole=log is not None)
            if not good.count or (atomic and rejected):
                raise _reject(rejected, good.count, input_name)
            topic = await self._registry.present(record, source, fresh=False)
            floors = await self._floors.of(topic)
            on_start()
            sent = await _send(log or self._log, source.topic, good, len(rejected))
        rejected = sorted([*rejected, *sent.failed, *sent.refused])
        acknowledged = sent.acknowledged
        if log is not None or atomic or not acknowledged.count:
            _demand_all(sent, source.topic, rejected, kept=log is None)
        spans = await self._spans(record, source, acknowledged, floors, kept=log is None)
        parts = [part_of(record, spans, counted=not acknowledged.unplaced)]
        sealed = self._mint.seal(parts, tenant=caller.tenant)
        if sent.left:
            raise _partial(sent, sealed.token, rejected)
        return Receipt(token=sealed.token, accepted=acknowledged.count, rejected=rejected)

    async def _read(
        self, body: Body, read: Reader, rule: RowRule, good: Spool, *, whole: bool
    ) -> list[Rejection]:
        """Read the body to its end, so that a broken body is refused before any of it is
        written.
        """
        limits = self._limits.of_whole() if whole else self._limits
        rows = RowReader(rule, limits, good.add)

        def read_all() -> None:
            read(body.pieces(), rows)
            rows.end()

        if body.small:
            read_all()
        else:
            await asyncio.get_running_loop().run_in_executor(self._threads, read_all)
        return rows.rejected

    async def _spans(
        self,
        record: PipelineRecord,
        source: InputDefinition,
        acknowledged: DeliveredRanges,
        floors: Mapping[int, int],
        *,
        kept: bool,
    ) -> tuple[Span, ...]:
        """Return the spans of what was delivered. The topic must be the same before and after the
        write.

        `kept`: what was written stays, also without a token. Raises Retryable and Refusal.
        """
        without = "the records are written, but have no token" if kept else "nothing was written"
        missing = acknowledged.unplaced
        try:
            ends = await self._topics.ends(source.topic, missing) if missing else {}
            identity = await self._registry.present(record, source, fresh=True)
        except Retryable as error:
            raise Retryable(f"{without}: {error}") from error
        except Refusal as refusal:
            detail = f"{without}: {refusal.detail}"
            raise Refusal(refusal.slug, detail, **refusal.members) from refusal
        back = acknowledged.shrunk_partitions(floors, ends)
        if back:
            where = ", ".join(f"{source.topic}-{partition}" for partition in sorted(back))
            raise Retryable(
                f"{without}: {where} seems to have lost others, or"
                " to be created again; what brokers say of it does not fit together"
            )
        return acknowledged.spans(identity.topic_id, floors, ends)


async def _send(log: Log, topic: str, good: Spool, named: int) -> _Sent:
    """Send the records piece by piece, until Kafka does not answer for one.

    A record that Kafka never accepts does not stop the others, unless there are more than can be
    named. `named`: so many are rejected already.
    """
    sent = _Sent()
    pieces = good.pieces()
    for piece in pieces:
        appended = await log.append(topic, piece)
        sent.acknowledged.add(appended.delivered)
        sent.failed += appended.failed
        sent.refused += appended.refused
        if sent.failed or named + len(sent.refused) > REJECTED_MAX:
            break
    known = sent.acknowledged.count + len(sent.failed) + len(sent.refused)
    left = (record for piece in pieces for record in piece)
    if good.count - known + named <= REJECTED_MAX:
        sent.failed += [Rejection(record.row, NOT_SENT) for record in left]
    else:
        sent.left = good.count - known
        sent.left_from = next(left).row
    return sent


def _partial(sent: _Sent, token: str, rejected: list[Rejection]) -> Refusal:
    detail = (
        f"kafka does not accept all of it ({(sent.failed or sent.refused)[0].reason}): `token` is"
        f" for the {sent.acknowledged.count} records below `not_sent_from` and not in `rejected`"
    )
    members = {"not_sent_from": sent.left_from, "accepted": sent.acknowledged.count}
    listed = as_json(rejected)
    return Refusal(Slug.NOT_AVAILABLE_NOW, detail, token=token, rejected=listed, **members)


def _reject(rejected: list[Rejection], good: int, input_name: str) -> Refusal:
    bad = len(rejected)
    if good:
        some = "1 record does" if bad == 1 else f"{bad} records do"
        reason = f"{some} not fit input {input_name!r}, so none of {bad + good} is kept"
    elif bad == 1:
        reason = f"the record does not fit input {input_name!r}"
    else:
        reason = f"none of {bad} records fits input {input_name!r}"
    return Refusal(Slug.RECORDS_REJECTED, reason, rejected=as_json(rejected))


def _demand_all(sent: _Sent, topic: str, rejected: list[Rejection], *, kept: bool) -> None:
    """Raise if records were refused or failed. `kept`: what was delivered stays."""
    done, refused = sent.acknowledged.count, len(sent.refused)
    failed = len(sent.failed) + sent.left
    total = done + refused + failed
    rest = f"; {done} are written, but have no token" if kept and done else ""
    if refused:
        detail = f"kafka refuses {refused} of {total} records for {topic}{rest}"
        members = {"hint": KEY_HINT, "rejected": as_json(rejected)}
        raise Refusal(Slug.RECORDS_REFUSED_BY_KAFKA, detail, **members)
    if failed:
        first = sent.failed[0].reason
        raise Retryable(f"kafka did not acknowledge {failed} of {total} records: {first}{rest}")


def as_json(rejected: list[Rejection]) -> list[dict[str, object]]:
    return [asdict(rejection) for rejection in rejected]


def one(value: bytes, key: str) -> list[Record]:
    """Return a single record for `Log.append`."""
    return [Record(0, key.encode(), value)]
