"""A replay that a person puts into the dead-letter topic: its letter dies at its message."""

from dataclasses import dataclass

import pytest

from unit.waybill_spark.graveyard import Graveyard
from unit.waybill_spark.letters import AT, BOTH, FIRST, REPLAYS, REPLAYS_ID, SECOND, Letters, again
from unit.waybill_spark.test_replaying import graveyard, letters
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.replays import LetterReplay
from waybill_spark.tracking.dead_letters.letters import letter_of

__all__ = ["graveyard", "letters"]  # fixtures
PUT = "put_by_operator"


@dataclass
class Messages:
    """Those of `letters`, by their offsets."""

    letters: Letters
    topic: str = REPLAYS

    def find(self, topic_id: str, partition: int, offset: int) -> LetterReplay | None:
        at = [each.asked for each in self.letters.messages if each.offset == offset]
        return at[0] if at and (topic_id, partition) == AT else None


@dataclass
class Replayed:
    messages: Messages
    letters: Letters


def put(graveyard: Graveyard, letters: Letters, offset: int) -> Problem | None:
    """The next driver puts the letter of the message at `offset`."""
    request = DeadLetterRequest(
        command=f"c{offset}",
        stage=None,
        topic=REPLAYS,
        topic_id=REPLAYS_ID,
        partition=AT[1],
        offset=offset,
        reason="ends the driver",
        by="ada",
    )
    graveyard.asked = (request,)
    stage = graveyard.stage()
    stage.report_losses()
    (problem,) = stage.put_dead_letters(Replayed(Messages(letters), letters)).values()
    graveyard.asked = ()
    return problem


def test_no_replay_reads_it_and_all_others_are_done(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, 4)
    assert put(graveyard, letters, 0) is None
    graveyard.failing = {1}
    graveyard.stage().replay(letters.replays(), letters)
    for sink in (graveyard.first, graveyard.second):
        assert again(sink, [1, 4]) == [0, 1]
    assert graveyard.buried() == [(1, PUT, None)]


def test_it_is_dead_at_its_message(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1)
    put(graveyard, letters, 0)
    (dead,) = graveyard.journal.buried
    fact = letter_of(dead, "T1", ("dlq", 0, 7))
    assert fact.replayed is not None
    assert (fact.replayed.topic_id, fact.replayed.offset, fact.offset) == (REPLAYS_ID, 0, 1)
    assert dead.cause.message == "ends the driver (put by ada)"


def test_it_is_written_once_by_any_number_of_drivers(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1)
    assert [put(graveyard, letters, 0) for _ in range(3)] == [None] * 3
    graveyard.stage().replay(letters.replays(), letters)
    assert put(graveyard, letters, 0) is None, "all sinks have passed it: the facts say so"
    assert graveyard.buried() == [(1, PUT, None)]


def test_it_dies_only_for_the_sinks_that_it_names_and_that_lack_it(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1, sinks=[SECOND])
    assert put(graveyard, letters, 0) is None
    assert graveyard.buried() == [(1, PUT, SECOND)]


def test_what_was_replayed_is_refused(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, sinks=[FIRST])
    graveyard.stage().replay(letters.replays(), letters)
    problem = put(graveyard, letters, 0)
    assert problem is not None
    assert "has processed it already" in problem.message
    assert graveyard.buried() == []


@pytest.mark.parametrize("offset", [1, 7])
def test_a_message_that_is_no_request_is_refused(
    graveyard: Graveyard, letters: Letters, offset: int
) -> None:
    letters.ask(1)
    problem = put(graveyard, letters, offset)
    assert problem is not None
    assert "no request of this pipeline" in problem.message


def test_a_stage_that_has_none_of_its_sinks_says_so(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, sinks=["other/out@1"])
    problem = put(graveyard, letters, 0)
    assert problem is not None
    assert (problem.message, problem.hint) == (
        f"{REPLAYS}[3]@0: it names no sink of stage load",
        "it names other/out@1",
    )


def test_a_letter_that_is_gone_is_left_to_the_replay(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1)
    letters.gone = {1}
    problem = put(graveyard, letters, 0)
    assert problem is not None
    assert "is gone" in problem.message


@pytest.mark.parametrize("sinks", [BOTH, (SECOND,)])
def test_the_query_gets_nothing_that_was_put_for_all_sinks_of_its_message(
    graveyard: Graveyard, letters: Letters, sinks: tuple[str, ...]
) -> None:
    letters.ask(1, 4, sinks=sinks)
    assert put(graveyard, letters, 0) is None
    letters.ending = {1}
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.second.numbers.count(4) == 1
