"""What the checker calls arrived: by every way that leads to a sink, and by no other."""

from collections.abc import Container
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from builders import UID, make_commit, make_fact, make_input, make_record, make_sink, make_stage
from sim.contents import Contents
from sim.effects import of_life, transform
from sim.flow import Flow, Taken
from sim.graves import Grave
from sim.log import Cluster, Place, Row
from sim.sinks import Batch, Storage
from waybill_shared.contract.events import Fence, PipelineRecord

THIN: Final = f"{UID}/thin/t@1"
LAKE: Final = f"{UID}/merge/lake@1"
ROW: Final = Row(1)  # one that `thin` passes on
PLACE: Final = Place("A", 0, 0)

A: Final = make_input("a", topic_id="A")
TOPIC: Final = make_sink("t", topic_id="T", terminal=False)
BETWEEN: Final = replace(make_input("t", topic_id="T", root=False), topic=TOPIC.target)
BEFORE: Final = make_record(
    stages=(
        make_stage("thin", inputs=(A,), sinks=(TOPIC,)),
        make_stage("merge", inputs=(A, BETWEEN)),
    )
)
ANEW: Final = make_stage(
    "thinr", inputs=(make_input("a", topic_id="B"),), sinks=(replace(TOPIC, since=2),), since=2
)
AFTER: Final = make_record(generation=2, stages=(ANEW,))
"""Both stages are gone, and another one fills the topic between them from a topic of its own."""

LATE: Final = f"{UID}/load/lake@2"
BACK: Final = make_record(
    generation=2,
    stages=(
        make_stage("thin", inputs=(A,), sinks=(replace(TOPIC, since=2),)),
        make_stage("load", inputs=(BETWEEN,), sinks=(make_sink(since=2),), since=2),
    ),
)
"""The sink that fills the topic between stages had gone and is back, with another reader."""


class Nobody:
    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        pass

    def buried(self, grave: Grave) -> None:
        pass


def make_flow(
    taken: Taken, *, lake: str = LAKE, now: PipelineRecord = AFTER, untold: Container[str] = ()
) -> Flow:
    """`taken` are batches as their stages took them; each was told but of `untold` sinks."""
    cluster = Cluster()
    storage = Storage(cluster, Nobody(), Random(0))
    cluster.create("a.in", "A", partitions=1).partitions[0].append(ROW)
    topic = cluster.create(TOPIC.target, "T", partitions=1).partitions[0]
    for _, batch in taken.get(THIN, ()):
        for row in batch.rows:
            topic.append(of_life(row, TOPIC.since))
    storage.table("lake").rows[lake] = [row for _, batch in taken[lake] for row in batch.rows]
    facts = [
        make_fact(make_commit(stage=key.split("/")[1], sink=sink, sequence=number))
        for key, sink in ((THIN, "t"), (lake, "lake"))
        for number, _ in taken.get(key, ())
        if key not in untold
    ]
    return Flow(UID, [BEFORE, now], facts, taken, cluster, Contents(cluster, storage))


def make_batch(stage: str, row: Row, place: Place) -> Batch:
    return Batch((*transform(UID, stage, row),), (place,))


def test_what_came_by_both_ways_has_arrived() -> None:
    (between,) = transform(UID, "thin", ROW)
    flow = make_flow(
        {
            THIN: [(0, make_batch("thin", ROW, PLACE))],
            LAKE: [
                (0, make_batch("merge", ROW, PLACE)),
                (1, make_batch("merge", of_life(between, TOPIC.since), Place("T", 0, 0))),
            ],
        }
    )

    assert flow.arrived(PLACE, LAKE)


def test_what_came_by_one_of_two_ways_has_not_arrived() -> None:
    """Whoever filled the topic on the other way after the reader had gone."""
    flow = make_flow({LAKE: [(0, make_batch("merge", ROW, PLACE))]})

    assert not flow.arrived(PLACE, LAKE)


def test_what_an_earlier_life_of_a_sink_wrote_has_not_arrived() -> None:
    """Its rows stand in the topic, and whoever came beside the later life has read them there."""
    (between,) = transform(UID, "thin", ROW)
    taken = {
        THIN: [(0, make_batch("thin", ROW, PLACE))],
        LATE: [(0, make_batch("load", of_life(between, TOPIC.since), Place("T", 0, 0)))],
    }

    assert not make_flow(taken, lake=LATE, now=BACK).arrived(PLACE, LATE)


@pytest.mark.parametrize("untold", [(), (THIN,)])
def test_batches_that_were_not_told_apart_share_their_fate(untold: tuple[str, ...]) -> None:
    """Nobody knows which of their rows are whose, and of the second none was read."""
    (between,) = transform(UID, "thin", ROW)
    flow = make_flow(
        {
            THIN: [
                (0, make_batch("thin", ROW, PLACE)),
                (1, make_batch("thin", Row(2), Place("A", 0, 1))),
            ],
            LAKE: [
                (0, make_batch("merge", ROW, PLACE)),
                (1, make_batch("merge", of_life(between, TOPIC.since), Place("T", 0, 0))),
            ],
        },
        untold=untold,
    )

    assert flow.arrived(PLACE, LAKE) == (not untold)
