"""Kafka and the clock as ingress sees them, in memory."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Event

from builders import applied
from clocks import NOW
from waybill_ingress.app.connector_ports import FetchFailed, FileDownload
from waybill_ingress.app.ports import Appended, Sealed
from waybill_ingress.core.rows import Record, Rejection
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Problem, Retryable
from waybill_shared.contract.events import InputDefinition, PipelineRecord, Reply, StageDefinition
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.tokens import Part, Token, open_token, pipeline_id, seal
from waybill_shared.contract.vectors import Span, Vector
from waybill_shared.kafka.admin_answers import TopicIdentity

OLD_ID = "b2xkb2xkb2xkb2xkb2xkbw"
NEW_ID = "bmV3bmV3bmV3bmV3bmV3bg"
RING = KeyRing(active=1, keys={1: b"k" * 32})
MANIFEST = """
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in}
    schema: "id BIGINT, name STRING"
    key: name
stages:
  - {name: copy, inputs: [orders], sinks: [{name: out, kafka: {topic: orders.out}}]}
"""


def offsets(*ends: int, topic_id: str = OLD_ID) -> Vector:
    """By partition."""
    return {(topic_id, partition): end for partition, end in enumerate(ends)}


def source(name: str = "orders", *, bases: Sequence[int] = (0, 0)) -> InputDefinition:
    return InputDefinition(
        name=name,
        topic="orders.in",
        topic_id=OLD_ID,
        root=True,
        bases=offsets(*bases),
        whole=offsets(*bases),
    )


def pipeline(*inputs: InputDefinition, name: str = "orders") -> PipelineRecord:
    stages = (StageDefinition(name="copy", since=1, inputs=inputs, sinks=()),) if inputs else ()
    return PipelineRecord(
        commanded_at=0,
        life=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid="uid-1",
        name=name,
        generation=2,
        desired="running",
        manifest=applied(MANIFEST),
        stages=stages,
        created_at=0,
        updated_at=0,
    )


async def at_once() -> None:
    """Let nobody go first."""


@dataclass
class FakeKafka:
    """`Log` and `Topics` over one topic with two partitions; records go round them."""

    pause: Callable[[], Awaitable[None]] = at_once
    """Awaited before records are written."""
    topic_id: str | None = OLD_ID
    ends_now: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    starts_now: dict[int, int] = field(default_factory=dict)
    written: list[Record] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    failing: dict[int, str] = field(default_factory=dict)
    refusing: dict[int, str] = field(default_factory=dict)
    hide_offsets: bool = False
    ends_away: bool = False
    starts_after_write: dict[int, int] = field(default_factory=dict)
    becomes: str | None = None
    away: bool = False
    away_after_write: bool = False
    described: int = 0
    lags: int = 0
    """So many of the next questions go to a broker that tells the topic before."""
    seen: TopicIdentity | None = None
    grown: list[tuple[str, int]] = field(default_factory=list)
    later_ends: list[dict[int, int]] = field(default_factory=list)

    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        await self.pause()
        if self.topic_id is None:
            failed = [Rejection(record.row, "there is no such topic") for record in records]
            return Appended(delivered=[], failed=failed)
        delivered = []
        for number, record in enumerate(records):
            if record.row in self.failing or record.row in self.refusing:
                continue
            partition = number % len(self.ends_now)
            at = self.ends_now[partition]
            self.ends_now[partition] = at + 1
            self.written.append(record)
            self.topics.append(topic)
            delivered.append((partition, -1 if self.hide_offsets else at))
        self.away = self.away_after_write
        self.starts_now |= self.starts_after_write
        if self.becomes is not None:
            self.topic_id = self.becomes
        failed = [Rejection(r.row, self.failing[r.row]) for r in records if r.row in self.failing]
        refused = [
            Rejection(r.row, self.refusing[r.row]) for r in records if r.row in self.refusing
        ]
        return Appended(delivered=delivered, failed=failed, refused=refused)

    def last_seen(self, topic: str) -> TopicIdentity | None:
        return self.seen

    async def describe(self, topic: str) -> TopicIdentity | None:
        if self.away:
            raise Retryable("kafka is away")
        self.described += 1
        known = self.topic_id
        if self.lags > 0:
            self.lags -= 1
            known = "before"
        identity = TopicIdentity(name=topic, topic_id=known or "", partitions=tuple(self.ends_now))
        self.seen = identity if known else None
        return self.seen

    async def cluster_id(self) -> str:
        return "cluster-1"

    async def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        self._refuse_absent()
        return {partition: self.starts_now.get(partition, 0) for partition in partitions}

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        if self.ends_away:
            self.ends_away = False
            raise Retryable("kafka is away")
        self._refuse_absent()
        if self.later_ends:
            self.ends_now = self.later_ends.pop(0)
        return {partition: self.ends_now[partition] for partition in partitions}

    async def add_partitions(self, topic: str, partitions: int) -> None:
        self.grown.append((topic, partitions))
        self.ends_now |= {p: 0 for p in range(partitions) if p not in self.ends_now}

    def _refuse_absent(self) -> None:
        if self.topic_id is None:
            raise Retryable("there is no such topic")


class FakeDirectory:
    """`Directory` and `News`: `told` is what is known as soon as somebody asks for news."""

    def __init__(self, *records: PipelineRecord) -> None:
        self.records = {record.name: record for record in records}
        self.ended: dict[str, PipelineRecord] = {}
        self.told: list[PipelineRecord] = []
        self.caught_up = True
        self.kafka_away = False
        self.asked = 0

    def has_caught_up(self) -> bool:
        return self.caught_up

    async def catch_up(self) -> bool:
        self.asked += 1
        if self.kafka_away or not self.caught_up:
            return False
        self.records |= {record.name: record for record in self.told}
        return True

    def by_uid(self, uid: str) -> PipelineRecord | None:
        return self.ended.get(uid)

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None:
        return next((each for each in self.living(tenant) if each.name == name), None)

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None:
        return next((each for each in self.living(tenant) if name in each.was), None)

    def living(self, tenant: str) -> list[PipelineRecord]:
        return [each for each in self.records.values() if each.tenant == tenant]

    def lives(self) -> list[PipelineRecord]:
        return [*self.records.values(), *self.ended.values()]

    def life_for(self, tenant: str, name: str) -> Life:
        known = self.by_name(tenant, name)
        return Life(uid=known.pipeline_uid if known else f"next-{name}", number=0)


@dataclass
class FakeMint:
    """Keeps what it sealed; its clock stands still unless a test moves it."""

    now: int = 1_000_000
    step_ms: int = 0
    parts: list[Part] = field(default_factory=list)
    tenants: list[str] = field(default_factory=list)
    assumed: bool = False

    def seal(
        self,
        parts: Sequence[Part],
        *,
        tenant: str,
        identity_assumed: bool = False,
        oldest_at: int | None = None,
    ) -> Sealed:
        self.parts, self.assumed = list(parts), identity_assumed
        self.tenants.append(tenant)
        return Sealed(token="wb1.token", issued_at=self.now)

    def now_ms(self) -> int:
        self.now += self.step_ms
        return self.now

    def nonce(self) -> str:
        return "ab" * 16


def span(partition: int, start: int, end: int) -> Span:
    return Span(topic_id=OLD_ID, partition=partition, start=start, end=end)


def sealed_token(
    *spans: Span,
    uid: str = "uid-1",
    generation: int = 1,
    issued_at: int = NOW,
    assumed: bool = False,
) -> str:
    part = Part(pipeline_id=pipeline_id(DEFAULT_TENANT, uid), generation=generation, spans=spans)
    token = Token(issued_at=issued_at, request_id="00" * 8, parts=(part,), identity_assumed=assumed)
    return seal(token, RING, tenant=DEFAULT_TENANT, nonce=bytes(12))


def unsealed(text: str) -> Token:
    return open_token(text, RING, tenant=DEFAULT_TENANT, now_ms=NOW)


@dataclass
class FakeAnswers:
    """`Answers`: `reply` is what becomes of each command, as far as that is known in time."""

    reply: Reply | None = None
    waited: list[tuple[str, float]] = field(default_factory=list)

    async def within(self, caller: Caller, operation: OperationId, wait_s: float) -> Reply | None:
        self.waited.append((str(operation), wait_s))
        return self.reply


@dataclass
class FakeSamples:
    """`Samples`: the newest records are `values`, whatever the topic."""

    values: Sequence[bytes | None] = ()
    away: bool = False

    async def newest(self, topic: str, partitions: Iterable[int]) -> Sequence[bytes | None]:
        if self.away:
            raise Retryable("kafka is away")
        return self.values


class FakeFetcher:
    """Knows no connections, and fetches nothing."""

    def fetch(self, connector: FileConnector, stop: Event) -> FileDownload:
        raise FetchFailed(f"{connector.url} is not fetched here")

    def fault(self, connector: FileConnector) -> Problem | None:
        return None
