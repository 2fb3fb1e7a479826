"""Clients, through the real use cases of `ingress` and `status`: births of tokens, and questions.

Both services follow `waybill.pipelines` at their own pace. What a client was told is remembered.
"""

from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar, cast

from sim.clocks import Clocks
from sim.log import Cluster, Partition, Place, Row
from sim.redis_server import RedisServer, Slots
from sim.sinks import Edge
from unit.ingress.bodies import WholeBody
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.app.ports import Appended, Sealed
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.rows import Record, Rejection, RowLimits
from waybill_ingress.core.token_coverage import NamedSpan
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.errors import Refusal, Retryable, TokenRefused
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.tokens import PREFIX, Part, Token, open_token, seal
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.core.outcomes.outcome import Outcome

RING = KeyRing(active=1, keys={1: bytes(32), 2: bytes([1] * 32)})
LIMITS = RowLimits(records_max=1000, record_bytes_max=10_000, bytes_max=10_000_000)
T = TypeVar("T")


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine whose ports never wait."""
    try:
        work.send(None)
    except StopIteration as stop:
        return cast(T, stop.value)
    except RuntimeError as error:  # it would sleep, and there is no loop to sleep in
        raise Retryable("not now") from error
    raise AssertionError("a simulated port waited")


@dataclass(frozen=True, slots=True)
class Issued:
    """A token and what it was asked for; `places` None means all that the input held."""

    text: str
    uid: str
    input_name: str
    generation: int
    places: tuple[Place, ...] | None
    exact: bool


class Around(Protocol):
    cluster: Cluster
    redis: RedisServer
    dice: Random

    @property
    def clocks(self) -> Clocks: ...

    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    def number(self) -> int: ...


class Follower(PipelineDirectory):
    """A service's view of the pipelines, which may be behind."""

    def __init__(self, records: Sequence[PipelineRecord]) -> None:
        super().__init__()
        self._records = records
        self._at = 0

    def follow(self) -> None:
        for record in self._records[self._at :]:
            self.accept(record)
        self._at = len(self._records)

    def has_caught_up(self) -> bool:
        return True

    async def catch_up(self) -> bool:
        self.follow()
        return True


class Ingress:
    """Fulfils `Log`, `Topics` and `SealingClock` for the use cases of ingress."""

    def __init__(self, world: Around, edge: Edge) -> None:
        self.directory = Follower(world.records)
        self._world = world
        self._edge = edge
        self._seen: dict[str, TopicIdentity] = {}
        self._registry = Registry(self.directory, self.directory, self, self)
        self._records = Records(self._registry, self, self, self, LIMITS, spool=RecordSpool)
        self._births = TokenIssuer(self._registry, self, self)
        self._appended: list[Place] = []
        self._unplaced = False
        self._sealed: Sequence[Part] = ()
        self.offsets_lost = 0.0

    def write(self, name: str, input_name: str, count: int) -> Issued | None:
        """A request with `count` records; None when there is no token."""
        numbers = [self._world.number() for _ in range(count)]
        body = b"\n".join(b'{"number": %d}' % number for number in numbers)
        self._appended, self._unplaced = [], False
        try:
            receipt = finished(
                self._records.write(ANYONE, name, input_name, WholeBody(body), read_ndjson)
            )
        except (Refusal, Retryable):
            return None
        places = tuple(self._appended)
        return self._issued(receipt.token, input_name, places, exact=not self._unplaced)

    def ask_all(self, name: str, input_name: str) -> Issued | None:
        """A token for all that the input holds."""
        try:
            sealed = finished(self._births.for_input(ANYONE, name, input_name))
        except (Refusal, Retryable):
            return None
        return self._issued(sealed.token, input_name, None, exact=False)

    def ask_for(
        self, name: str, input_name: str, topic: str, places: Sequence[Place]
    ) -> Issued | None:
        """A token for records that a client produced by itself, by its delivery reports."""
        positions = [
            NamedSpan(topic=topic, topic_id=p.topic_id, partition=p.partition, start=p.offset,
                     end=p.offset + 1)
            for p in places
        ]  # fmt: skip
        try:
            sealed = finished(self._births.for_positions(ANYONE, name, positions))
        except (Refusal, Retryable):
            return None
        return self._issued(sealed.token, input_name, tuple(places), exact=True)

    def _issued(
        self, text: str, input_name: str, places: tuple[Place, ...] | None, *, exact: bool
    ) -> Issued:
        part = self._sealed[0]
        owner = self.directory.owner_of(part.pipeline_id)
        assert owner is not None
        uid = owner.pipeline_uid
        return Issued(text, uid, input_name, part.generation, places, exact)

    # Log

    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        delivered: list[tuple[int, int]] = []
        failed: list[Rejection] = []
        for record in records:
            self._edge("ingress.producing")
            found = self._world.cluster.topics.get(topic)
            if found is None or self._world.dice.random() < self.offsets_lost / 2:
                failed.append(Rejection(record.row, "not acknowledged"))
                continue
            number = self._world.dice.randrange(len(found.partitions))
            row = Row(int(record.value.split(b":")[1].strip(b" }")))
            offset = found.partitions[number].append(row)
            self._appended.append(Place(found.topic_id, number, offset))
            lost = self._world.dice.random() < self.offsets_lost
            delivered.append((number, -1 if lost else offset))
            self._unplaced |= lost
        self._edge("ingress.acknowledged")
        return Appended(delivered=delivered, failed=failed)

    # Topics

    def last_seen(self, topic: str) -> TopicIdentity | None:
        return self._seen.get(topic)

    async def describe(self, topic: str) -> TopicIdentity | None:
        found = self._world.cluster.topics.get(topic)
        if found is None:
            self._seen.pop(topic, None)
            return None
        partitions = tuple(range(len(found.partitions)))
        identity = TopicIdentity(name=topic, topic_id=found.topic_id, partitions=partitions)
        self._seen[topic] = identity
        self._edge("ingress.described")
        return identity

    async def cluster_id(self) -> str:
        return "cluster"

    async def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        found = self._partitions(topic, partitions)
        starts = {number: partition.start for number, partition in found.items()}
        self._edge("ingress.starts_read")
        return starts

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        found = self._partitions(topic, partitions)
        ends = {number: partition.end() for number, partition in found.items()}
        self._edge("ingress.ends_read")
        return ends

    def _partitions(self, topic: str, partitions: Iterable[int]) -> dict[int, Partition]:
        found = self._world.cluster.topics.get(topic)
        if found is None:
            raise Retryable(f"topic {topic} is unknown")
        try:
            return {number: found.partitions[number] for number in partitions}
        except IndexError as error:
            raise Retryable(f"topic {topic} has no such partition") from error

    # Mint

    def seal(
        self,
        parts: Sequence[Part],
        *,
        tenant: str,
        identity_assumed: bool = False,
        oldest_at: int | None = None,
    ) -> Sealed:
        dice = self._world.dice
        self._sealed = parts
        token = Token(
            issued_at=self.now_ms(),
            request_id=f"{dice.getrandbits(64):016x}",
            parts=tuple(parts),
            identity_assumed=identity_assumed,
            oldest_at=oldest_at,
        )
        text = seal(token, RING, tenant=tenant, nonce=dice.randbytes(12))
        return Sealed(token=text, issued_at=token.issued_at)

    def now_ms(self) -> int:
        return self._world.clocks.ingress.now_ms()

    def nonce(self) -> str:
        return f"{self._world.dice.getrandbits(128):032x}"


class Status:
    """Asks the real use case; every answer comes from one reading."""

    def __init__(self, world: Around) -> None:
        self.directory = Follower(world.records)
        self._questions = Tokens(
            self.directory,
            self.directory,
            store=Slots(world.redis),
            hub=cast(Hub, None),
            ring=RING,
            clock=world.clocks.status,
        )

    def ask(self, text: str, asked: TokenView = WHOLE) -> Outcome | TokenRefused:
        try:
            token = self._questions.open(ANYONE.tenant, text)
        except TokenRefused as refused:
            return refused
        return finished(self._questions.now([token], asked))[0]

    def open(self, text: str) -> Token:
        return self._questions.open(ANYONE.tenant, text)


def outcome_text(outcome: Outcome | TokenRefused) -> str:
    if isinstance(outcome, TokenRefused):
        return "refused"
    return (
        f"{outcome.outcome} {outcome.reason or ''} {[lost.reason for lost in outcome.lost] or ''}"
    )


def forgeries(text: str, dice: Random) -> Iterator[str]:
    """What somebody may try with a token that is not theirs."""
    at = dice.randrange(len(PREFIX), len(text))
    yield text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    yield text[:at]
    yield PREFIX + text[len(PREFIX) :][::-1]
    token = open_token(text, RING, tenant=DEFAULT_TENANT, now_ms=0)
    yield seal(token, RING, tenant="another", nonce=dice.randbytes(12))
    foreign = KeyRing(active=1, keys={1: bytes([7] * 32)})
    yield seal(token, foreign, tenant=DEFAULT_TENANT, nonce=dice.randbytes(12))
