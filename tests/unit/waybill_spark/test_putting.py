"""Records that a person puts into their dead-letter topic: once, before any batch reads them."""

from dataclasses import replace
from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME, TOPIC
from unit.waybill_spark.graveyard import Graveyard
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem, Retryable
from waybill_spark.tracking.rewinding import Rewind
from waybill_spark.tracking.sink import SinkSuperseded

PUT = "put_by_operator"


@pytest.fixture
def graveyard(tmp_path: Path) -> Graveyard:
    return Graveyard(tmp_path)


def asked(offset: int, topic_id: str = "T1") -> DeadLetterRequest:
    return DeadLetterRequest(
        command=f"c{offset}",
        stage=None,
        topic=TOPIC,
        topic_id=topic_id,
        partition=0,
        offset=offset,
        reason="ends the driver",
        by="ada",
    )


def put(graveyard: Graveyard, offset: int) -> Problem | None:
    """The next driver, up to where its query would start."""
    graveyard.asked = (asked(offset),)
    stage = graveyard.stage()
    stage.report_losses()
    (problem,) = stage.put_dead_letters().values()
    return problem


@pytest.mark.parametrize("offset", [2, 12])
def test_no_batch_reads_the_record_however_far_ahead_it_is(
    graveyard: Graveyard, offset: int
) -> None:
    graveyard.failing = {offset}
    assert put(graveyard, offset) is None
    graveyard.asked = ()
    graveyard.run(0, end=5)
    graveyard.run(1, end=10)
    graveyard.run(2, end=15)
    left = [number for number in range(15) if number != offset]
    assert graveyard.first.numbers == graveyard.second.numbers == left
    assert graveyard.buried() == [(offset, PUT, None)]


def test_the_letter_has_the_record_the_reason_and_who_asked(graveyard: Graveyard) -> None:
    put(graveyard, 2)
    (letter,) = graveyard.journal.buried
    assert (letter.record.key, letter.record.value) == (b"k", b"2")
    assert letter.cause.message == "ends the driver (put by ada)"


def test_a_batch_that_was_planned_before_comes_again_without_it(graveyard: Graveyard) -> None:
    graveyard.plan(0, 5)  # and the driver died in it
    assert put(graveyard, 2) is None
    assert graveyard.stage().resume() == {}
    graveyard.run(0, end=5)
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 3, 4]


def test_it_is_written_once_by_any_number_of_drivers(graveyard: Graveyard) -> None:
    assert [put(graveyard, 2) for _ in range(3)] == [None] * 3
    graveyard.run(0, end=5)
    assert put(graveyard, 2) is None, "all sinks have passed it: the facts say that it is done"
    assert graveyard.buried() == [(2, PUT, None)]


def test_a_driver_that_dies_at_the_journal_leaves_it_to_the_next(graveyard: Graveyard) -> None:
    graveyard.journal.dying = True
    with pytest.raises(Retryable):
        put(graveyard, 2)
    graveyard.journal.dying = False
    assert put(graveyard, 2) is None
    assert graveyard.buried() == [(2, PUT, None)]


def test_a_driver_of_before_cannot_write_it_any_more(graveyard: Graveyard) -> None:
    graveyard.plan(0, 5)
    before = graveyard.stage()
    put(graveyard, 2)
    with pytest.raises(SinkSuperseded):
        before.process(NO_FRAME, 0)
    assert {fence.epoch for fence in graveyard.first.fences} == {2}


def test_what_every_sink_has_is_refused(graveyard: Graveyard) -> None:
    graveyard.run(0, end=5)
    problem = put(graveyard, 4)
    assert problem is not None
    assert problem.message == (
        "orders.in[0]@4: stage load has processed it already, so its token is final"
    )
    assert graveyard.buried() == []


def test_a_sink_that_has_the_record_keeps_it(graveyard: Graveyard) -> None:
    graveyard.second.failing = {0}
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    assert put(graveyard, 2) is None
    graveyard.run(0, end=5)
    assert graveyard.first.numbers == [0, 1, 2, 3, 4]
    assert graveyard.second.numbers == [0, 1, 3, 4]
    assert graveyard.buried() == [(2, PUT, "load/second@1")]


def test_what_is_not_in_kafka_any_more_is_refused(graveyard: Graveyard) -> None:
    graveyard.gone = {2}
    problem = put(graveyard, 2)
    assert problem is not None
    assert "no such record any more" in problem.message
    assert graveyard.buried() == []


def test_a_topic_that_is_another_one_by_now_is_refused(graveyard: Graveyard) -> None:
    """Its records have the same offsets, and other tokens."""
    graveyard.asked = (asked(2),)
    stage = graveyard.stage()
    graveyard.topic_id = "T2"
    (problem,) = stage.put_dead_letters().values()
    assert problem is not None
    assert graveyard.buried() == []


def test_a_record_that_comes_again_after_a_rewind_can_be_put(graveyard: Graveyard) -> None:
    graveyard.run(0, end=5)
    graveyard.rewind = Rewind(number=1, starts={("T1", 0): 0})
    assert put(graveyard, 2) is None
    graveyard.asked = ()
    graveyard.stage().resume()
    graveyard.plan(0, 5)
    graveyard.stage().process(NO_FRAME, 0)
    assert graveyard.first.numbers == [0, 1, 2, 3, 4, 0, 1, 3, 4]


def test_what_was_set_aside_is_lost_and_does_not_die(graveyard: Graveyard) -> None:
    graveyard.run(0, end=5)
    graveyard.log_start = 8
    stage = graveyard.stage()
    with pytest.raises(Exception, match="no longer holds"):
        stage.report_losses()
    graveyard.rewind, graveyard.log_start = Rewind(number=1, starts={("T1", 0): 0}), 0
    problem = put(graveyard, 6)
    assert problem is not None
    assert graveyard.buried() == []


def test_each_request_has_its_own_answer(graveyard: Graveyard) -> None:
    graveyard.run(0, end=5)
    graveyard.asked = (asked(4), asked(7), replace(asked(8), command="other"))
    found = graveyard.stage().put_dead_letters()
    assert {command: problem is None for command, problem in found.items()} == {
        "c4": False,
        "c7": True,
        "other": True,
    }
