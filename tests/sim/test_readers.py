"""What the checker calls arrived of a Kafka sink whose topic is gone: what its readers had."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, cast

from builders import NOW, TENANT, UID, make_input, make_record, make_sink, make_stage
from sim.checked_world import Around
from sim.checker import Checker
from sim.clients import Issued
from sim.contents import fence_key
from sim.effects import of_life, transform
from sim.graves import Grave
from sim.log import Cluster, Place, Row
from sim.sinks import Batch, Storage
from waybill_shared.contract.events import Fence, PipelineRecord, StageDefinition
from waybill_shared.contract.tokens import Part, Token, pipeline_id
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.outcome import Outcome

ROOT: Final = Row(1)
TOPIC: Final = make_sink("t", topic_id="T")
FILL: Final = make_stage("fill", inputs=(make_input("a", topic_id="A"),), sinks=(TOPIC,))
BETWEEN: Final = replace(make_input("t", topic_id="T", root=False), topic=TOPIC.target)
(WRITTEN,) = (of_life(row, TOPIC.since) for row in transform(UID, "fill", ROOT))


class Nobody:
    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        pass

    def buried(self, grave: Grave) -> None:
        pass


@dataclass
class Remains:
    """A world without processes."""

    records: list[PipelineRecord]
    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        self.storage = Storage(self.cluster, Nobody(), Random(0))

    def newest(self, _uid: str) -> PipelineRecord:
        return self.records[-1]

    def say(self, text: str) -> None:
        pass


def make_reader(*sinks: str, since: int = 1) -> StageDefinition:
    lakes = tuple(make_sink(name, since=since) for name in sinks)
    return make_stage("load", inputs=(BETWEEN,), sinks=lakes, since=since)


def found(*readers: StageDefinition, had: tuple[str, ...]) -> list[str]:
    """Of a token that is told complete when the topic between and then each reader, one after the
    other, are gone. These sinks `had` what stood in the topic."""
    stages = [(FILL, *readers[at:]) for at in range(len(readers) + 1)]
    world = Remains([make_record(generation=n, stages=s) for n, s in enumerate(stages, start=1)])
    world.cluster.create("a.in", "A", partitions=1).partitions[0].append(ROOT)
    world.cluster.create(TOPIC.target, "T", partitions=1).partitions[0].append(WRITTEN)
    world.cluster.delete(TOPIC.target)
    checker = Checker(cast(Around, world))
    for stage, sink in ((reader, sink) for reader in readers for sink in reader.sinks):
        if sink.name in had:
            key = fence_key(UID, stage, sink)
            rows = (*transform(UID, stage.name, WRITTEN),)
            world.storage.table(sink.target).rows[key] = [*rows]
            checker.fences.taken[key] = [(0, Batch(rows, (Place("T", 0, 0),)))]
    checker.told(*told_complete())
    return [violation.invariant for violation in checker.violations]


def told_complete() -> tuple[Issued, Token, Outcome]:
    spans = (Span(topic_id="A", partition=0, start=0, end=1),)
    part = Part(pipeline_id=pipeline_id(TENANT, UID), generation=1, spans=spans)
    return (
        Issued(text="1", uid=UID, input_name="a", generation=1, places=None, exact=True),
        Token(issued_at=NOW, request_id="1", parts=(part,)),
        Outcome(
            outcome=OutcomeKind.COMPLETE,
            reason=None,
            pipeline=None,
            accepted=None,
            issued_at=NOW,
            completed_at=None,
            stages=(),
            lost=(),
            parts=None,
        ),
    )


def test_what_a_stage_had_of_a_topic_that_is_gone_has_arrived() -> None:
    assert found(make_reader("lake"), had=("lake",)) == []


def test_what_no_stage_had_of_a_topic_that_is_gone_has_not_arrived() -> None:
    assert "I1" in found(make_reader("lake"), had=())


def test_what_one_of_two_sinks_had_has_not_arrived() -> None:
    assert "I1" in found(make_reader("lake", "copy"), had=("lake",))


def test_what_a_stage_had_that_came_later_has_not_arrived() -> None:
    """The token never waited for it."""
    assert "I1" in found(make_reader("lake", since=2), had=("lake",))


def test_who_read_there_last_had_it() -> None:
    """The token went on to wait for that one when the other was removed."""
    first = make_reader("lake")
    second = replace(make_reader("copy"), name="again")

    assert found(first, second, had=("copy",)) == []
    assert "I1" in found(first, second, had=("lake",))
