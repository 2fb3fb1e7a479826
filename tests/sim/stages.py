"""One stage in a driver: the real `TrackedStage`, fed by a simulated query."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, cast

from pyspark.sql import DataFrame

from sim.contents import fence_key
from sim.effects import transform
from sim.files import MemoryPath
from sim.graves import FAILING, MALFORMED, SimJournal, fate
from sim.letters import SimLetters
from sim.log import Place, Row
from sim.replay_log import PLACE as REPLAYS_PLACE
from sim.sinks import Batch, KafkaSink, Storage, TableSink
from sim.spark import Frame, Query, QueryFailed, static_frame
from waybill_shared.contract.errors import ContractError, Problem
from waybill_shared.contract.events import Commit, Fact, PipelineRecord, StageDefinition
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.slots import key_of, stage_key
from waybill_shared.contract.words import DeadReason
from waybill_shared.process.clock import Clock
from waybill_spark.driver.definitions import (
    checkpoint_path,
    later_sinks,
    requests_of,
    rewinds_of,
    stage_inputs,
)
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.checkpoint import Checkpoint
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.dead_letters.records import (
    NOTHING,
    DeadCause,
    DeadLetterRecord,
    RawRecord,
    RejectedRecord,
    Without,
    positions_of,
)
from waybill_spark.tracking.dead_letters.records import QueryFailed as ValueFails
from waybill_spark.tracking.loads import Loads
from waybill_spark.tracking.pieces import Ranges, in_steps
from waybill_spark.tracking.sink import SinkLife
from waybill_spark.tracking.stage import TrackedStage

STEP_MAX = 8
WINDOW_MS = 1_000_000_000_000  # what a start may put aside, it may put aside once


class Host(Protocol):
    """The driver as a stage needs it."""

    identity: Identity
    record: PipelineRecord

    @property
    def ends(self) -> bool:
        """Whether its stages end by themselves."""

    @property
    def storage(self) -> Storage: ...

    @property
    def files(self) -> MemoryPath: ...

    @property
    def clock(self) -> Clock: ...

    def edge(self, name: str) -> None:
        """A place where the process may crash or be paused."""

    def emit(self, commit: Commit) -> None: ...

    def bury(self, fact: Fact) -> None:
        """With an acknowledgement."""

    @property
    def loads(self) -> Loads: ...


class SimStage:
    """As `RunningStage`, with a simulated query; fulfils `waybill_spark.tracking.ports.Source`."""

    def __init__(self, definition: StageDefinition, host: Host) -> None:
        self.name = definition.name
        self._does = first_name(definition)
        self.reads = frozenset(each.topic_id for each in definition.inputs)
        self.outputs = frozenset(each.topic_id for each in definition.sinks) - {None}
        self.busy = False
        self._started = False
        self._replays_at: int | None = None
        self._caught_up = False
        self._uid = host.identity.pipeline_uid
        self._edge = host.edge
        self._storage = host.storage
        self._mood = host.storage.mood
        self._dice = host.storage.dice
        self._cluster = host.storage.cluster
        self._inputs = stage_inputs(definition)
        folder = host.files / f"{self._uid}/{checkpoint_path(definition, self._inputs)}"
        self._sinks = tuple(open_sink(definition, sink.name, host) for sink in definition.sinks)
        self.put_aside = 0
        self._is_open = False
        self._tracked = TrackedStage(
            self.name,
            identity=host.identity,
            inputs=self._inputs,
            sinks=self._sinks,
            later=later_sinks(definition),
            rewinds=rewinds_of(definition, host.record.rewinds),
            dead_letters=requests_of(definition, host.record.dead_letters),
            checkpoint=Checkpoint(folder),
            source=self,
            offsets_max=STEP_MAX,
            to_rows=self._rows,
            journal=open_journal(definition, host),
            budget=Budget(host.storage.budget, WINDOW_MS),
            loads=host.loads,
            emit=host.emit,
            report_maintenance=lambda _: None,
            clock=host.clock,
        )
        self._key = stage_key(definition)
        names = [sink.name for sink in self._sinks]
        self._letters = SimLetters(self._uid, self.name, names, host.storage, host.edge)
        self._letters.does = self._does
        topics = (source.topic for source in self._inputs)
        self._query = Query(self._cluster, folder, topics, host.storage.dice, ends=host.ends)

    def open(self) -> None:
        self._tracked.open()

    def report_losses(self) -> None:
        self._tracked.report_losses()
        self._is_open = True

    def put_dead_letters(self) -> Mapping[str, Problem | None]:
        return self._tracked.put_dead_letters()

    def start(self) -> None:
        starts = self._tracked.resume()
        self._query.start(starts, {i.topic: i.topic_id for i in self._inputs})
        self._started = True

    def watch(self) -> None:
        self._tracked.watch()

    def has_ended(self) -> bool:
        return self._started and self._query.has_ended()

    def move_claims(self) -> None:
        self._tracked.move_claims()

    def has_hidden_rows(self) -> bool:
        return self._tracked.has_hidden_rows()

    def set_paused(self, *, paused: bool) -> None:
        """Its driver steps none of its stages while it is paused."""

    def keep_out_earlier(self) -> None:
        if self._is_open:
            with suppress(ContractError):
                self._tracked.move_claims()

    def end_query(self) -> None:
        self._tracked.close()

    def stop(self) -> None:
        self._tracked.close()

    def start_replays(self) -> None:
        self._replays_at = min(e.get(REPLAYS_PLACE, 0) for e in self._tracked.replays_done())

    def has_replays(self) -> bool:
        """Whether there are letters of its pipeline that it has not read yet."""
        at = self._replays_at
        return at is not None and self._storage.replays.has_more(self._uid, at)

    def has_replayed(self) -> bool:
        self._caught_up = self._caught_up or not self.has_replays()
        return self._caught_up

    def replay(self) -> None:
        """Read some of them, and replay its own."""
        assert self._replays_at is not None
        found = self._storage.replays.read(self._uid, self._replays_at, self._dice)
        mine = [each for each in found.letters if each.asked.stage == self._key]
        self._tracked.replay(replace(found, letters=mine), self._letters)
        self._replays_at = found.end

    def step(self) -> None:
        """One batch, if there is anything to do."""
        if not self._started or self.has_ended():
            return
        planned = self._next()
        if planned is None:
            return
        batch_id, frame = planned
        self._edge(f"{self.name}.planned")
        self._tracked.process(cast(DataFrame, frame), batch_id)
        self._edge(f"{self.name}.before_commit_log")
        self._query.commit()

    def ids(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        found = {name: self._cluster.identify(name) for name in wanted}
        self._edge(f"{self.name}.ids_seen")
        return {name: topic_id for name, topic_id in found.items() if topic_id is not None}

    def starts(self, topic: str, held: Mapping[int, int]) -> Mapping[int, int]:
        found = self._cluster.topics.get(topic)
        return {} if found is None else {n: p.start for n, p in enumerate(found.partitions)}

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        """Now and then more than can be read at once; what is too much is another thing then."""
        return in_steps(ranges, self._dice.choice((1, 2, STEP_MAX, STEP_MAX)))

    @property
    def must_stay_whole(self) -> bool:
        return False

    def has_no_records(self, ranges: Ranges) -> bool:
        return False

    def distributes(self, ranges: Ranges) -> bool:
        return self._dice.choice((False, True))

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        return self._give(static_frame(self._cluster, ranges), without)

    def plan_records(self, ranges: Ranges, without: Without) -> None:
        """Plan nothing: each trial of a search reads."""

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        death = DeadCause(reason=DeadReason.MALFORMED, message="")
        found = self.raw(positions_of(rejected))
        self._edge(f"{self.name}.dead_read")
        return tuple(DeadLetterRecord(record=record, cause=death) for record in found)

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        ids = {source.topic: source.topic_id for source in self._inputs}
        return tuple(
            self._raw(Place(ids[topic], partition, offset))
            for (topic, partition), offsets in positions.items()
            for offset in sorted(offsets)
            if self._cluster.has_row(Place(ids[topic], partition, offset))
        )

    def _next(self) -> tuple[int, Frame] | None:
        try:
            return self._query.next_batch()
        except QueryFailed:
            self._tracked.watch()  # Kafka may know it better than Spark does
            raise

    def _rows(self, frame: DataFrame) -> BatchRows:
        return self._give(cast(Frame, frame), NOTHING)

    def _give(self, frame: Frame, without: Without) -> BatchRows:
        read = [*self._left(frame.rows(), without)]
        self._edge(f"{self.name}.rows_read")
        alive = [(place, row) for place, row in read if not self._malformed(row)]
        if any(fate(self._storage.mood, self.name, row) == FAILING for _, row in alive):
            raise ValueFails("a value ends the query", "ArithmeticException")
        rows = tuple(out for _, row in alive for out in transform(self._uid, self._does, row))
        batch = Batch(rows, tuple(place for place, _ in alive))
        dead = tuple(self._doomed(place) for place, row in read if self._malformed(row))
        return BatchRows({sink.name: batch for sink in self._sinks}, dead=dead)

    def _left(
        self, read: Iterable[tuple[Place, Row]], without: Without
    ) -> Iterator[tuple[Place, Row]]:
        names = {topic.topic_id: name for name, topic in self._cluster.topics.items()}
        for place, row in read:
            left_out = without.get((names[place.topic_id], place.partition), ())
            if place.offset not in left_out:
                yield place, row

    def _malformed(self, row: Row) -> bool:
        """A driver has one plan, which says the same of a record at each look."""
        return fate(self._mood, self.name, row) == MALFORMED

    def _doomed(self, place: Place) -> RejectedRecord:
        topic = self._cluster.incarnations[place.topic_id].name
        return RejectedRecord(
            topic=topic, partition=place.partition, offset=place.offset, verdict=0
        )

    def _raw(self, place: Place) -> RawRecord:
        name = self._cluster.incarnations[place.topic_id].name
        return RawRecord(
            topic=name, partition=place.partition, offset=place.offset, key=None, value=None
        )


def open_journal(stage: StageDefinition, host: Host) -> SimJournal:
    return SimJournal(
        host.identity.pipeline_uid,
        stage,
        host.storage.graves,
        mourner=host.storage.witness,
        row_at=host.storage.cluster.row_at,
        append=host.bury,
        edge=host.edge,
    )


def open_sink(stage: StageDefinition, name: str, host: Host) -> KafkaSink | TableSink:
    definition = next(sink for sink in stage.sinks if sink.name == name)
    life = SinkLife(
        name=name,
        since=definition.since,
        moved=definition.moved,
        fence_key=fence_key(host.identity.pipeline_uid, stage, definition),
        key=key_of(stage, definition) if stage.was or definition.was else "",
    )
    storage, edge = host.storage, host.edge
    if definition.topic_id is None:
        return TableSink(life, storage, definition.target, edge)
    return KafkaSink(life, storage, definition.target, definition.topic_id, edge)
