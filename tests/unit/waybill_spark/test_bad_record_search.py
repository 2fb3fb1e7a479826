"""The search for the records at which a query ends: its price, and what is known meanwhile."""

from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME
from unit.waybill_spark.graveyard import Graveyard
from waybill_spark.tracking.dead_letters import searching
from waybill_spark.tracking.dead_letters.records import Without
from waybill_spark.tracking.pieces import Ranges


def test_few_records_are_read_twice_however_many_of_them_fail(tmp_path: Path) -> None:
    graveyard = Graveyard(tmp_path, plans_up_to=100, failing=set(range(0, 64, 2)))
    graveyard.run(0, end=64)
    assert [offset for offset, _, _ in graveyard.buried()] == [*range(0, 64, 2)]
    assert graveyard.reads == 3, "the batch, to see that the rest passes, and the rest"


def test_a_search_is_what_the_sinks_wait_for_and_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "REPORT_MS", 0)
    graveyard = Graveyard(tmp_path, failing={3, 12})
    graveyard.plan(0, end=16)
    stage = graveyard.stage()
    said: list[list[tuple[str, str, str | None]]] = []

    def look(ranges: Ranges, without: Without) -> None:
        said.append([(w.sink, w.blocked_by, w.message) for w in stage.waits(-1)])

    monkeypatch.setattr(graveyard, "plan_records", look)
    stage.process(NO_FRAME, 0)
    first, last = "0 found, 16 left to try", "2 found, 1 left to try"
    assert (said[0], said[-1]) == tuple(
        [(sink, "searching_for_bad_records", text) for sink in ("first", "second")]
        for text in (first, last)
    )
    assert stage.waits(-1) == (), "it is over"


def test_a_record_that_passes_when_it_is_planned_is_found_all_the_same(tmp_path: Path) -> None:
    graveyard = Graveyard(tmp_path, plans_up_to=100, failing={3, 7}, missed={3})
    graveyard.run(0, end=16)
    assert {offset for offset, _, _ in graveyard.buried()} == {3, 7}
    assert graveyard.first.numbers == [o for o in range(16) if o not in {3, 7}]
