"""Takes records for an input. Promise: a token covers exactly what Kafka has acknowledged, and
what it does not cover is named with its reason."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from waybill_ingress.app.floors import Floors
from waybill_ingress.app.ports import (
    Appended,
    Log,
    Mint,
    Topics,
)
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.births import (
    delivered_spans,
    gone_back,
    part_of,
    unplaced,
)
from waybill_ingress.core.demands import Demand
from waybill_ingress.core.inputs import row_rules
from waybill_ingress.core.rows import (
    Record,
    Rejection,
    RowLimits,
    RowRule,
    Rows,
    read_array,
    read_ndjson,
)
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.vectors import Span

LARGE_BODY_BYTES = 200_000  # parsed in a thread, so that small requests are answered meanwhile

KEY_HINT = (
    "a compacted topic takes only records with a key: set `key` of the input in the manifest,"
    " and let no record's key be null"
)

Format = Literal["ndjson", "array"]
READERS: dict[Format, Callable[[bytes, RowRule, RowLimits], Rows]] = {
    "ndjson": read_ndjson,
    "array": read_array,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    token: str
    accepted: int
    rejected: list[Rejection]


class Records:
    def __init__(
        self, registry: Registry, log: Log, topics: Topics, mint: Mint, limits: RowLimits
    ) -> None:
        self._registry = registry
        self._log = log
        self._topics = topics
        self._mint = mint
        self._floors = Floors(topics, mint)
        self._limits = limits

    async def write(
        self,
        caller: Caller,
        pipeline: str,
        input_name: str,
        body: bytes,
        form: Format,
        *,
        demand: Demand | None = None,
        atomic: bool = False,
        log: Log | None = None,
    ) -> Receipt:
        """`atomic`: one record that is rejected rejects all; what Kafka has taken by then stays.

        `log`: another one to write to, in which nothing counts if this raises.
        """
        record, source = await self._registry.input(caller.tenant, pipeline, input_name, demand)
        rows = await self._read(body, row_rules(record.manifest)[input_name], form)
        if not rows.records or (atomic and rows.rejected):
            raise _rejected(rows, input_name)
        topic = await self._registry.present(record, source, fresh=False)
        floors = await self._floors.of(topic)
        appended = await (log or self._log).append(source.topic, rows.records)
        rejected = sorted([*rows.rejected, *appended.failed, *appended.refused])
        if log is not None or atomic or not appended.delivered:
            _demand_all(appended, source.topic, rejected, kept=log is None)
        spans = await self._spans(record, source, appended, floors, kept=log is None)
        counted = not unplaced(appended.delivered)
        parts = [part_of(record, spans, counted=counted)]
        sealed = self._mint.seal(parts, tenant=caller.tenant)
        return Receipt(token=sealed.token, accepted=len(appended.delivered), rejected=rejected)

    async def _read(self, body: bytes, rule: RowRule, form: Format) -> Rows:
        read = READERS[form]
        if len(body) < LARGE_BODY_BYTES:
            return read(body, rule, self._limits)
        return await asyncio.to_thread(read, body, rule, self._limits)

    async def _spans(
        self,
        record: PipelineRecord,
        source: InputDefinition,
        appended: Appended,
        floors: Mapping[int, int],
        *,
        kept: bool,
    ) -> tuple[Span, ...]:
        """What was delivered, in a topic that was the same before and after; `kept`: it stays,
        also without a token."""
        without = "the records are written, but have no token" if kept else "nothing was written"
        missing = unplaced(appended.delivered)
        try:
            ends = await self._topics.ends(source.topic, missing) if missing else {}
            identity = await self._registry.present(record, source, fresh=True)
        except Retryable as error:
            raise Retryable(f"{without}: {error}") from error
        except Refusal as refusal:
            detail = f"{without}: {refusal.detail}"
            raise Refusal(refusal.slug, detail, **refusal.members) from refusal
        back = gone_back(appended.delivered, floors, ends)
        if back:
            where = ", ".join(f"{source.topic}-{partition}" for partition in sorted(back))
            raise Retryable(
                f"{without}: {where} seems to have lost others, or"
                " to be created anew; what brokers say of it does not fit together"
            )
        return delivered_spans(identity.topic_id, appended.delivered, floors, ends)


def _rejected(rows: Rows, input_name: str) -> Refusal:
    bad, good = len(rows.rejected), len(rows.records)
    if good:
        some = "1 record does" if bad == 1 else f"{bad} records do"
        reason = f"{some} not fit input {input_name!r}, so none of {bad + good} is kept"
    elif bad == 1:
        reason = f"the record does not fit input {input_name!r}"
    else:
        reason = f"none of {bad} records fits input {input_name!r}"
    return Refusal(Slug.RECORDS_REJECTED, reason, rejected=as_json(rows.rejected))


def _demand_all(appended: Appended, topic: str, rejected: list[Rejection], *, kept: bool) -> None:
    """`kept`: what was delivered stays."""
    done, refused, failed = map(len, (appended.delivered, appended.refused, appended.failed))
    total = done + refused + failed
    rest = f"; {done} are written, but have no token" if kept and done else ""
    if refused:
        detail = f"kafka refuses {refused} of {total} records for {topic}{rest}"
        members = {"hint": KEY_HINT, "rejected": as_json(rejected)}
        raise Refusal(Slug.RECORDS_REFUSED_BY_KAFKA, detail, **members)
    if failed:
        first = appended.failed[0].reason
        raise Retryable(f"kafka did not acknowledge {failed} of {total} records: {first}{rest}")


def as_json(rejected: list[Rejection]) -> list[dict[str, object]]:
    return [asdict(rejection) for rejection in rejected]


def one(value: bytes, key: str) -> list[Record]:
    """A single record for `Log.append`."""
    return [Record(0, key.encode(), value)]
