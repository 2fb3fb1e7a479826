"""The world as who checks it needs it, and what is found to be wrong there."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol

from sim.clients import Issued
from sim.log import Cluster
from sim.redis_server import RedisServer
from sim.sinks import Storage
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import TopicPartition
from waybill_shared.process.clock import Clock
from waybill_status.core.outcomes.judgements import LostSpan
from waybill_status.core.outcomes.views import SlotReading


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


class ToldLost(NamedTuple):
    lost: Sequence[LostSpan]
    reading: SlotReading
    """By which it was told."""


class Around(Protocol):
    cluster: Cluster
    redis: RedisServer
    storage: Storage
    dice: Random

    @property
    def clock(self) -> Clock: ...

    def newest(self, uid: str) -> PipelineRecord: ...

    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    def base(self, uid: str, stage: str, sink: str, place: TopicPartition) -> int: ...

    def life_of(self, uid: str, sink: str) -> str | None: ...

    def say(self, text: str) -> None: ...

    def open(self, issued: Issued) -> Token: ...
