"""A pipeline as its data sees it: records, where each one's rows went, what stages set aside, and
the facts that were sent. The oracle for `reached` and `lost`. Knows nothing of hops."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from builders import (
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_sink,
    make_stage,
    with_batch,
)
from waybill_shared.contract.events import Commit, Definition, Fact, Output, Range, SetAside
from waybill_shared.contract.vectors import ENDLESS, TopicPartition
from waybill_spark.tracking.outputs import SinkTopic, outputs_after

PARTITIONS = (0, 1)
ROOTS = ("R", "S")
ROOT_END = 8  # records in each partition of a root topic
BASES = (0, 2)  # by partition: where stages begin in a root topic
LAKE = "lake"

Place = tuple[str, int, int]  # topic id, partition, offset


@dataclass(frozen=True, slots=True)
class StageShape:
    """A stage with outputs writes Kafka topics, one without writes the lake."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()


SHAPES: dict[str, tuple[StageShape, ...]] = {
    "one stage": (StageShape("load", ("R",)),),
    "two stages": (StageShape("enrich", ("R",), ("A",)), StageShape("load", ("A",))),
    "three stages": (
        StageShape("enrich", ("R",), ("A",)),
        StageShape("join", ("A",), ("B",)),
        StageShape("load", ("B",)),
    ),
    "diamond": (
        StageShape("left", ("R",), ("A",)),
        StageShape("right", ("R",), ("B",)),
        StageShape("load", ("A", "B")),
    ),
    "shortcut": (StageShape("enrich", ("R",), ("A",)), StageShape("load", ("A", "R"))),
    "two roots": (StageShape("enrich", ("R", "S"), ("A",)), StageShape("load", ("A",))),
    "two outputs": (StageShape("enrich", ("R",), ("A", "B")), StageShape("load", ("A", "B"))),
    "two writers of one topic": (
        StageShape("left", ("R",), ("A",)),
        StageShape("right", ("R", "S"), ("A",)),
        StageShape("load", ("A",)),
    ),
}


@dataclass(frozen=True, slots=True)
class Take:
    """One batch: how many offsets of each input partition, and how its rows fan out."""

    stage: int
    counts: tuple[int, ...]
    fans: tuple[tuple[int, int], ...]  # by record in turn: how many rows, into which partition
    dead: frozenset[int] = frozenset()  # which of its records die, by their numbers in the batch


@dataclass(frozen=True, slots=True)
class Skip:
    """Retention has passed a stage by so many offsets of each input partition."""

    stage: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recreate:
    """A topic is created anew and the pipeline is restarted; readers close the old id later."""

    topic: int


Event = Take | Skip | Recreate
ONE_ROW: Final = ((1, 0),)


@dataclass
class Flow:
    stages: tuple[StageShape, ...]
    facts: list[Fact] = field(default_factory=list)
    taken: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    _aside: dict[str, dict[str, list[Range]]] = field(default_factory=dict, repr=False)
    _ids: dict[str, list[str]] = field(default_factory=dict, repr=False)  # by topic, newest last
    _log: dict[TopicPartition, list[Place | None]] = field(default_factory=dict, repr=False)
    _outputs: dict[tuple[str, str], tuple[Output, ...]] = field(default_factory=dict, repr=False)
    _rows: dict[tuple[str, Place], list[Place]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for stage in self.stages:
            self.taken[stage.name] = {}
            for topic in (*stage.inputs, *stage.outputs):
                self._ids.setdefault(topic, [topic])
            for topic in stage.inputs:
                self._begin(stage, topic)
        self.facts.append(make_fact(self.definition()))

    @property
    def commits(self) -> list[Commit]:
        return [fact.body for fact in self.facts if isinstance(fact.body, Commit)]

    def definition(self) -> Definition:
        read = {topic for stage in self.stages for topic in stage.inputs}
        return make_definition(
            *(
                make_stage(
                    stage.name,
                    inputs=tuple(
                        replace(
                            make_input(
                                topic,
                                topic_id=self._ids[topic][-1],
                                root=topic in ROOTS,
                                bases=BASES if topic in ROOTS else (0, 0),
                            ),
                            retired=tuple(self._ids[topic][:-1]),
                        )
                        for topic in stage.inputs
                    ),
                    sinks=tuple(
                        make_sink(
                            f"to_{topic}", topic_id=self._ids[topic][-1], terminal=topic not in read
                        )
                        for topic in stage.outputs
                    )
                    or (make_sink(LAKE),),
                )
                for stage in self.stages
            )
        )

    def run(self, event: Event) -> None:
        match event:
            case Take():
                self._take(self.stages[event.stage % len(self.stages)], event)
            case Skip():
                self._skip(self.stages[event.stage % len(self.stages)], event.counts)
            case Recreate():
                self._recreate(sorted(self._ids)[event.topic % len(self._ids)])

    def drain(self, *, at_once: int) -> None:
        """Every stage takes all that there is, so much of a partition at a time."""
        for number, stage in enumerate(self.stages):
            self._close_retired(stage)
            for index, place in enumerate(self._open(stage)):
                counts = (*([0] * index), at_once)
                while self.taken[stage.name][place] < len(self._log.get(place, [])):
                    self.run(Take(number, counts, ONE_ROW))
            self._report(stage)

    def arrived(self, row: Place, lake: Mapping[TopicPartition, int]) -> bool:
        """Whether everything that came of `row` lies in the lake, which has taken `lake`."""
        topic_id, partition, offset = row
        for stage in self.stages:
            if not any(topic_id in self._ids[topic] for topic in stage.inputs):
                continue
            if self._missed(stage, row):
                return False
            taken = self.taken[stage.name] if stage.outputs else lake
            if offset >= taken.get((topic_id, partition), 0):
                return False
            if not all(self.arrived(b, lake) for b in self._rows.get((stage.name, row), [])):
                return False
        return True

    def doomed(self, row: Place) -> bool:
        """Whether some stage has set aside `row`, or anything that came of it."""
        return any(
            self._missed(stage, row)
            or any(self.doomed(below) for below in self._rows.get((stage.name, row), []))
            for stage in self.stages
            if any(row[0] in self._ids[topic] for topic in stage.inputs)
        )

    def roots(self) -> list[Place]:
        """Every record of a root topic that stages were to take."""
        return [
            (topic_id, p, offset)
            for topic in ROOTS
            for topic_id in self._ids.get(topic, [])
            for p in PARTITIONS
            for offset in range(BASES[p], ROOT_END)
        ]

    def _missed(self, stage: StageShape, row: Place) -> bool:
        topic_id, partition, offset = row
        runs = [run for runs in self._aside.get(stage.name, {}).values() for run in runs]
        closed = {run.topic_id for run in runs if run.end == ENDLESS}
        if topic_id in closed and (topic_id, partition) not in self.taken[stage.name]:
            return True
        return any(
            (run.topic_id, run.partition) == (topic_id, partition) and run.start <= offset < run.end
            for run in runs
        )

    def _begin(self, stage: StageShape, topic: str) -> None:
        topic_id = self._ids[topic][-1]
        for p in PARTITIONS:
            self.taken[stage.name][topic_id, p] = BASES[p] if topic in ROOTS else 0
            if topic in ROOTS:
                self._log[topic_id, p] = [(topic_id, p, offset) for offset in range(ROOT_END)]

    def _take(self, stage: StageShape, take: Take) -> None:
        self._close_retired(stage)
        taken = self.taken[stage.name]
        batch: list[Place] = []
        for place, count in zip(self._open(stage), take.counts, strict=False):
            start = taken[place]
            end = min(start + count, len(self._log.setdefault(place, [])))
            batch += [row for row in self._log[place][start:end] if row is not None]
            taken[place] = max(start, end)
        batch = self._living(stage, take, batch)
        for topic in stage.outputs:
            self._write(stage.name, topic, batch, take.fans)
        self._report(stage)

    def _living(self, stage: StageShape, take: Take, batch: list[Place]) -> list[Place]:
        """Those of which something comes; the others are told before that is."""
        return batch

    def _told_dead(self, stage: str) -> int:
        return 0

    def _skip(self, stage: StageShape, counts: tuple[int, ...]) -> None:
        self._close_retired(stage)
        for place, count in zip(self._open(stage), counts, strict=False):
            start = self.taken[stage.name][place]
            end = min(start + count, len(self._log.setdefault(place, [])))
            if start < end:
                self._put_aside(stage, "retention_passed", place, start, end)
        self._report(stage)

    def _recreate(self, topic: str) -> None:
        self._ids[topic].append(f"{topic}{len(self._ids[topic])}")
        for stage in self.stages:
            if topic in stage.inputs:
                self._begin(stage, topic)
        generation = 1 + sum(len(ids) - 1 for ids in self._ids.values())
        self.facts.append(make_fact(self.definition(), generation=generation))

    def _close_retired(self, stage: StageShape) -> None:
        """A stage that never wrote a fence names partition 0 alone, from the beginning."""
        wrote = any(commit.stage == stage.name for commit in self.commits)
        for topic in stage.inputs:
            for topic_id in self._ids[topic][:-1]:
                taken = self.taken[stage.name]
                places = [(topic_id, p) for p in PARTITIONS if (topic_id, p) in taken]
                if not wrote:
                    for place in places:
                        del taken[place]
                    taken[topic_id, 0] = 0
                    places = [(topic_id, 0)]
                for place in places:
                    if taken[place] < ENDLESS:
                        self._put_aside(stage, "topic_recreated", place, taken[place], ENDLESS)

    def _put_aside(
        self, stage: StageShape, reason: str, place: TopicPartition, start: int, end: int
    ) -> None:
        run = Range(topic="t", topic_id=place[0], partition=place[1], start=start, end=end)
        self._aside.setdefault(stage.name, {}).setdefault(reason, []).append(run)
        self.taken[stage.name][place] = end

    def _open(self, stage: StageShape) -> list[TopicPartition]:
        """The partitions that a stage reads, of the topics as they are now."""
        return [(self._ids[topic][-1], p) for topic in sorted(stage.inputs) for p in PARTITIONS]

    def _report(self, stage: StageShape) -> None:
        aside = tuple(
            SetAside(reason=reason, ranges=tuple(runs))
            for reason, runs in sorted(self._aside.get(stage.name, {}).items())
        )
        for topic in stage.outputs or (LAKE,):
            sink = LAKE if topic == LAKE else f"to_{topic}"
            commit = make_commit(
                dict(self.taken[stage.name]),
                stage=stage.name,
                sink=sink,
                sequence=len(self.commits),
            )
            outputs = self._outputs.get((stage.name, topic), ())
            commit = with_batch(commit, dead_sequence=self._told_dead(stage.name))
            self.facts.append(make_fact(replace(commit, outputs=outputs, set_aside=aside)))

    def _write(
        self, stage: str, topic: str, batch: list[Place], fans: tuple[tuple[int, int], ...]
    ) -> None:
        topic_id = self._ids[topic][-1]
        placed: dict[int, tuple[int, int]] = {}
        for number, row in enumerate(batch):
            count, partition = fans[number % len(fans)]
            log = self._log.setdefault((topic_id, partition), [])
            for _ in range(count):
                below = (topic_id, partition, len(log))
                log.append(below)
                self._rows.setdefault((stage, row), []).append(below)
                placed[partition] = (placed.get(partition, below[2:])[0], len(log))
        for partition in placed:
            self._log[topic_id, partition].append(None)  # the transaction's marker takes an offset
        to = SinkTopic(topic="t", topic_id=topic_id)
        before = self._outputs.get((stage, topic), ())
        self._outputs[stage, topic] = outputs_after(before, placed, to)
