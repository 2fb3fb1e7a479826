"""The whole of Waybill around one log: who is alive, whose turn it is, and where they are stopped.

Everything that happens follows from one seed. There are no threads: whoever is paused at an edge
is a call that has not returned yet, while others take their turns inside it.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

from sim.checker import Checker
from sim.clients import Ingress, Issued, Status, outcome_text
from sim.clocks import Clocks, TrueClock
from sim.driver import Crash, Driver
from sim.driver_world import DriverEvent
from sim.files import MemoryPath
from sim.graves import Grave
from sim.hosts import Hosts
from sim.log import Cluster
from sim.operations import Operations
from sim.pipelines import Pipeline
from sim.redis_server import RedisServer
from sim.replay_tokens import ReplayTokens
from sim.runner import RunnerProcess
from sim.runs import Runs
from sim.schedules import Schedules
from sim.shapes import Shape
from sim.sinks import Batch, Storage
from sim.stops import Stops
from sim.waiters import Waiters
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact, Fence, PipelineRecord, StageDefinition
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.slots import key_of, stage_key
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import TopicPartition
from waybill_stage_runner.core.pipelines.events import DriverEnded
from waybill_status.core.outcomes.outcome import Outcome

NAMES = ("p", "q")
DEPTH_MAX = 2
PAUSE_STEPS = (1, 3, 10, 30)
TAKEOVER_STEPS = 12
T = TypeVar("T")


@dataclass(slots=True)
class Rates:
    """How often what goes wrong; all zero means calm."""

    crash: float = 0.0
    pause: float = 0.0
    takeover: float = 0.0
    unsure: float = 0.0
    facts: float = 0.0
    letters: float = 0.0  # of facts about the dead, which may come late
    stuck: float = 0.0


class World:
    disturbed = False
    """Whether records were removed, so that some of them may rightly be in no sink."""
    patient = True
    """Whether a command is tried for as long as it takes."""
    _depth = 0
    _numbers = 0

    def __init__(self, seed: int, shapes: Sequence[Shape], partitions: int = 1) -> None:
        self.dice = Random(seed)
        self.pipelines = [
            Pipeline(self, name, shape) for name, shape in zip(NAMES, shapes, strict=False)
        ]
        self.clock = TrueClock()
        self.clocks = Clocks(self.clock)
        self.rates = Rates()
        self.trace: list[str] = []
        self.moves: Callable[[], None] = lambda: None
        """What may happen while somebody is paused."""
        self.cluster = Cluster()
        self.storage = Storage(self.cluster, self, self.dice)
        self.checker = Checker(self)
        self.runs = Runs(self, self.checker.report)
        self.schedules = Schedules(self, self.checker.report)
        self.stops = Stops(self.checker.report)
        self.files = MemoryPath({}, "/checkpoints")
        self.records: list[PipelineRecord] = []
        self.redis = RedisServer(self.clock)
        self.drivers: list[Driver] = []
        self.delayed: list[Fact] = []
        self.issued: list[Issued] = []
        self.kept: dict[str, str] = {}
        self.deleted: dict[str, int] = {}
        self._told: dict[str, str] = {}
        self.ingress = Ingress(self, lambda edge: self.interrupt("ingress", edge))
        self.status = Status(self)
        self.replay_tokens = ReplayTokens(self, self.checker.report)
        self.waiters = Waiters(self, self.status.directory)
        self.partitions = [
            Hosts(self, Operations(self.records, partial(self._has, number)))
            for number in range(partitions)
        ]

    # What the others need of the world

    def hosts_of(self, uid: str) -> Hosts:
        """A pipeline's partition follows from its key."""
        return self.partitions[int(uid[:8], 16) % len(self.partitions)]

    def _has(self, number: int, uid: str) -> bool:
        return self.hosts_of(uid) is self.partitions[number]

    def facts_of(self, uid: str) -> list[Fact]:
        return [f for f in self.hosts_of(uid).topics.facts if f.pipeline_uid == uid]

    def commanded(self) -> int:
        """How many commands there were."""
        return sum(len(each.operations.commands) for each in self.partitions)

    def some_hosts(self) -> Hosts:
        return self.some(self.partitions)

    def say(self, text: str) -> None:
        self.trace.append(f"{'  ' * self._depth}{text}")

    def pick(self, count: int) -> int:
        return self.dice.randrange(count)

    def some(self, choices: Sequence[T]) -> T:
        return choices[self.dice.randrange(len(choices))]

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def topic_id(self) -> str:
        return base64.urlsafe_b64encode(self.dice.randbytes(16)).rstrip(b"=").decode()

    def newest(self, uid: str) -> PipelineRecord:
        return next(r for r in reversed(self.records) if r.pipeline_uid == uid)

    def base(self, uid: str, stage: str, sink: str, place: TopicPartition) -> int:
        """Where the stage began when it had this life of the sink."""
        for record in reversed(self.records):
            if record.pipeline_uid != uid:
                continue
            for definition in (s for s in record.stages if first_name(s) == stage):
                lives = [f"{first_name(each)}@{each.since}" for each in definition.sinks]
                for source in (i for i in definition.inputs if sink in lives):
                    if source.topic_id == place[0]:
                        return source.bases.get(place, 0)
        return 0

    def life_of(self, uid: str, sink: str) -> str | None:
        """The key of the stage that has the sink of that key, or had it last."""
        for record in reversed(self.records):
            for stage in record.stages if record.pipeline_uid == uid else ():
                if sink in {key_of(stage, s) for s in stage.sinks}:
                    return stage_key(stage)
        return None

    def stuck(self) -> bool:
        return self.dice.random() < self.rates.stuck

    def interrupt(self, who: str, edge: str) -> None:
        """At an edge of `who`: go on, crash, lose an answer, or let others take their turns."""
        roll = self.dice.random()
        rates = self.rates
        if roll < rates.crash and not who.startswith("ingress"):
            self.say(f"{who} crashes at {edge}")
            raise Crash
        roll -= rates.crash
        if roll < rates.pause and self._depth < DEPTH_MAX:
            self._pause(who, edge)
        elif roll < rates.pause + rates.unsure and edge.endswith(("answer_lost", "before_commit")):
            self.say(f"{who} gets no answer at {edge}")
            raise Retryable(f"no answer at {edge}")

    def send(self, fact: Fact) -> bool:
        """A commit on its way: it arrives now, later, twice or never."""
        roll = self.dice.random()
        if roll < self.rates.facts:
            return False
        if roll < 3 * self.rates.facts:
            self.delayed.append(fact)
        arrives = not self.rates.facts <= roll < 2 * self.rates.facts
        if arrives:
            self.append(fact)
        return arrives

    def bury(self, fact: Fact) -> None:
        """What is told of the dead."""
        late = self.rates.letters and self.dice.random() < self.rates.letters
        self.delayed.append(fact) if late else self.append(fact)

    def append(self, fact: Fact) -> None:
        self.hosts_of(fact.pipeline_uid).topics.facts.append(fact)

    def hear(self, driver: Driver, event: DriverEvent) -> None:
        if not driver.forgotten and isinstance(driver.host, RunnerProcess):
            self.say(f"{driver}: {event}")
            driver.host.hear(driver, event)

    def check_pause(self, driver: Driver) -> None:
        """I14: no batch begins while the pipeline is to be paused and its phase says that it is."""
        uid = driver.record.pipeline_uid
        if driver.forgotten or self.hosts_of(uid).operations.owner is not driver.host:
            return  # its fences are those of an earlier driver: what it writes is refused
        if self._is_paused(uid):
            self.checker.report("I14", f"{driver} begins a batch though it is paused")

    def _is_paused(self, uid: str) -> bool:
        """Whether a pipeline is to be paused, and its phase says that it is."""
        if self.newest(uid).desired != "paused":
            return False
        events = (e for e in reversed(self.hosts_of(uid).topics.lifecycle) if e.pipeline_uid == uid)
        newest = next((e for e in events if e.kind == "transition"), None)
        return newest is not None and newest.phase == Phase.PAUSED

    def launch(
        self,
        record: PipelineRecord,
        epoch: int,
        host: object,
        *,
        closing: tuple[StageDefinition, ...],
    ) -> None:
        """Its predecessors are gone, but for those that are paused where nobody sees them, and
        those of other hosts."""
        for driver in self.alive(record.pipeline_uid):
            if driver.host is host and not driver.forgotten:
                driver.kill()
        self.drivers = [d for d in self.drivers if not d.dead]
        self.drivers.append(Driver(record, epoch, self, host, closing=closing))
        if not closing:
            self.runs.begun(record.pipeline_uid)
            self.schedules.begun(record.pipeline_uid)
        self.say(f"{self.drivers[-1]} is launched, generation {record.generation}")

    def alive(self, uid: str | None = None) -> list[Driver]:
        return [
            d for d in self.drivers
            if not d.dead and (uid is None or d.record.pipeline_uid == uid)
        ]  # fmt: skip

    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        """I14: no batch of any run is committed in a pause."""
        uid = after.pipeline_uid
        if batch is not None and self._is_paused(uid):
            self.checker.report("I14", f"{key} #{after.batch.sequence} is committed in a pause")
        self.checker.fences.moved(key, before, after, batch)

    def buried(self, grave: Grave) -> None:
        self.checker.fences.buried(grave)

    # Processes

    def suspect(self, driver: Driver) -> None:
        """The runner takes a paused driver for dead."""
        self.hear(driver, DriverEnded(exit_code=-9))
        driver.forgotten = True

    # What clients do

    def tell(
        self, birth: Callable[[], Issued | None], ends: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Have a token made, and hold it against what it was asked for."""
        with self.partitions[0].turn(self.ingress) as ingress:
            if ingress is None:
                return
            issued = birth()
            if issued is not None:
                self.say(f"token {len(self.issued)} for {issued.places or 'all'}")
                self.issued.append(issued)
                self.checker.born(issued, self.open(issued), ends or {})

    def ask(self, issued: Issued) -> bool:
        """Whether its end is told now."""
        outcome = self.status.ask(issued.text)
        text = outcome_text(outcome)
        if self._told.get(issued.text) != text:
            self._told[issued.text] = text
            self.say(f"token {self.issued.index(issued)}: {text}")
        self.checker.answered(issued, self.open(issued), outcome)
        return isinstance(outcome, Outcome) and outcome.final

    def open(self, issued: Issued) -> Token:
        return self.status.open(issued.text)

    def forge(self, issued: Issued) -> None:
        self.checker.forged(issued, self.status)

    def unfinished(self) -> list[Issued]:
        return [issued for issued in self.issued if not self.checker.final(issued)]

    def _pause(self, who: str, edge: str) -> None:
        self.say(f"{who} is paused at {edge}")
        self._depth += 1
        if self.dice.random() < self.rates.takeover:
            self._take_over(who)
        for _ in range(self.dice.choice(PAUSE_STEPS)):
            self.clock.now += 50
            self.moves()
        self._depth -= 1
        self.say(f"{who} goes on at {edge}")

    def _take_over(self, who: str) -> None:
        """A driver is paused for so long that another one is in its place and at work."""
        for driver in [d for d in self.alive() if str(d) == who]:
            self.suspect(driver)
            for _ in range(TAKEOVER_STEPS):
                self.clock.now += 1_000
                self.hosts_of(driver.record.pipeline_uid).run_runner()
                for other in self.alive(driver.record.pipeline_uid):
                    if other is not driver:
                        other.turn()
