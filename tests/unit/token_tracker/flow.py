"""A pipeline as its data sees it: records, where each one's rows went, and the commits that the
stages sent. The oracle for what `reached` may say. Knows nothing of hops."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builders import make_commit, make_definition, make_input, make_sink, make_stage
from shared.events import Commit, Definition
from shared.vectors import TopicPartition

PARTITIONS = (0, 1)
ROOTS = ("R", "S")
ROOT_END = 8  # records in each partition of a root topic
BASES = (0, 2)  # by partition: where stages begin in a root topic
LAKE = "lake"

Place = tuple[str, int, int]  # topic, partition, offset


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


@dataclass
class Flow:
    stages: tuple[StageShape, ...]
    commits: list[Commit] = field(default_factory=list)
    taken: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    _log: dict[TopicPartition, list[Place | None]] = field(default_factory=dict, repr=False)
    _written: dict[tuple[str, str], dict[TopicPartition, int]] = field(
        default_factory=dict, repr=False
    )
    _rows: dict[tuple[str, Place], list[Place]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for topic in ROOTS:
            for p in PARTITIONS:
                self._log[topic, p] = [(topic, p, offset) for offset in range(ROOT_END)]
        for stage in self.stages:
            self.taken[stage.name] = {
                (topic, p): BASES[p] if topic in ROOTS else 0
                for topic in stage.inputs
                for p in PARTITIONS
            }

    def definition(self) -> Definition:
        read = {topic for stage in self.stages for topic in stage.inputs}
        return make_definition(
            *(
                make_stage(
                    stage.name,
                    inputs=tuple(
                        make_input(
                            topic,
                            topic_id=topic,
                            root=topic in ROOTS,
                            bases=BASES if topic in ROOTS else (0, 0),
                        )
                        for topic in stage.inputs
                    ),
                    sinks=tuple(
                        make_sink(f"to_{topic}", topic_id=topic, terminal=topic not in read)
                        for topic in stage.outputs
                    )
                    or (make_sink(LAKE),),
                )
                for stage in self.stages
            )
        )

    def run(self, take: Take) -> None:
        """One batch of one stage, and the commits that its sinks report."""
        stage = self.stages[take.stage % len(self.stages)]
        taken = self.taken[stage.name]
        batch: list[Place] = []
        for (place, start), count in zip(sorted(taken.items()), take.counts, strict=False):
            end = min(start + count, len(self._log.setdefault(place, [])))
            batch += [row for row in self._log[place][start:end] if row is not None]
            taken[place] = max(start, end)
        for topic in stage.outputs:
            self._write(stage.name, topic, batch, take.fans)
        for sink in [f"to_{topic}" for topic in stage.outputs] or [LAKE]:
            outputs = self._written.get((stage.name, sink.removeprefix("to_")), {})
            self.commits.append(
                make_commit(
                    dict(taken),
                    stage=stage.name,
                    sinks=(sink,),
                    outputs=dict(outputs),
                    sequence=len(self.commits),
                )
            )

    def arrived(self, row: Place, lake: Mapping[TopicPartition, int]) -> bool:
        """Whether everything that came of `row` lies in the lake, which has taken `lake`."""
        topic, partition, offset = row
        for stage in self.stages:
            if topic not in stage.inputs:
                continue
            if not stage.outputs:
                if offset >= lake.get((topic, partition), 0):
                    return False
            elif offset >= self.taken[stage.name][topic, partition] or not all(
                self.arrived(below, lake) for below in self._rows.get((stage.name, row), [])
            ):
                return False
        return True

    def _write(
        self, stage: str, topic: str, batch: list[Place], fans: tuple[tuple[int, int], ...]
    ) -> None:
        written = self._written.setdefault((stage, topic), {})
        touched = set()
        for number, row in enumerate(batch):
            count, partition = fans[number % len(fans)]
            log = self._log.setdefault((topic, partition), [])
            for _ in range(count):
                below = (topic, partition, len(log))
                log.append(below)
                self._rows.setdefault((stage, row), []).append(below)
                touched.add(partition)
        for partition in touched:
            self._log[topic, partition].append(None)  # the transaction's marker takes an offset
            written[topic, partition] = len(self._log[topic, partition])
