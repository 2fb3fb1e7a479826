"""`pending` of `GET …/offsets`: where the next run begins, until one has done it."""

from dataclasses import replace

import pytest

from builders import make_sink
from clocks import NOW
from unit.status.slots import COPY, ENRICH, LOAD, TOPIC, offsets, reading, record, slot, stages
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.vectors import ENDLESS
from waybill_status.core.pipelines.offsets import offsets_of

BACK = StageRewind(
    stage="enrich", since=1, number=2, starts=offsets(4), by="ada", at=NOW, forward=False
)
LATEST = replace(BACK, starts=offsets(6), forward=True)


def at(*, enriched: SinkState | None = None, copy: SinkState | None = None) -> Slot:
    sinks = {ENRICH: enriched, COPY: copy, LOAD: SinkState()}
    here = {key: state for key, state in sinks.items() if state is not None}
    return replace(slot(bases=(3, 1)), sinks=here)


def sink(frontier: int, *, rewind: int = 0, position: int | None = None) -> SinkState:
    rewound = {} if position is None else offsets(position)
    return SinkState(frontier=offsets(frontier, 5), rewind=rewind, rewound=rewound)


def pending(content: Slot | None, *rewinds: StageRewind, later: bool = False) -> list[int | None]:
    """Of both partitions that the first stage reads."""
    enrich, load = stages(3, 1)
    if later:
        added = replace(make_sink("later", since=1), bases=offsets(7, 5))
        enrich = replace(enrich, sinks=(*enrich.sinks, added))
    known = replace(record(), stages=(enrich, load), rewinds=rewinds)
    ends = {i.topic_id: {0: 9, 1: 5} for stage in (enrich, load) for i in stage.inputs}
    found = offsets_of(known, None if content is None else reading(content), ends, at=NOW)
    return [each.pending for each in found.stages[0].inputs[0].partitions]


def test_what_is_set_is_pending_in_its_partitions_until_every_sink_has_done_it() -> None:
    before = at(enriched=sink(7), copy=sink(6))
    assert pending(before, BACK) == [4, None]
    between = at(enriched=sink(7, rewind=2, position=4), copy=sink(6))
    assert pending(between, BACK) == [4, None]
    after = at(enriched=sink(7, rewind=2, position=4), copy=sink(6, rewind=2, position=4))
    assert pending(after, BACK) == [None, None]
    assert pending(before) == [None, None]


@pytest.mark.parametrize(
    "rewind",
    [replace(BACK, starts={}), replace(BACK, stage="load"), replace(BACK, since=2)],
    ids=["was taken back", "of another stage", "of an earlier stage of that name"],
)
def test_other_rewinds_are_not_pending(rewind: StageRewind) -> None:
    assert pending(at(enriched=sink(7), copy=sink(6)), rewind) == [None, None]


def test_latest_never_goes_back() -> None:
    assert pending(at(enriched=sink(9), copy=sink(8)), LATEST) == [8, None]
    assert pending(at(enriched=sink(5), copy=sink(4)), LATEST) == [6, None]


def test_a_pipeline_that_never_ran_begins_there() -> None:
    assert pending(at(), BACK) == [4, None]


def test_a_sink_that_was_added_since_begins_where_the_others_are() -> None:
    done = at(enriched=sink(7, rewind=2, position=4), copy=sink(6, rewind=2, position=4))
    assert pending(done, BACK, later=True) == [None, None]


def test_where_the_position_is_unknown_nothing_is_said() -> None:
    assert pending(None, BACK) == [None, None]
    deleted = replace(sink(7), frontier={(TOPIC, 0): ENDLESS})
    assert pending(at(enriched=deleted, copy=deleted), BACK) == [None, None]
