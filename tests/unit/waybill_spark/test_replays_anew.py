"""`waybill.replays` is created again: what was asked for there and is not done is set aside."""

from dataclasses import replace

from unit.waybill_spark.bench import NO_FRAME
from unit.waybill_spark.graveyard import Graveyard
from unit.waybill_spark.letters import AT, FIRST, REPLAYS_ID, Letters, again
from unit.waybill_spark.test_replaying import PLACE, graveyard, letters
from waybill_shared.contract.vectors import ENDLESS
from waybill_shared.contract.words import LossReason

__all__ = ["graveyard", "letters"]  # fixtures


def test_what_is_left_of_an_earlier_topic_is_set_aside(
    graveyard: Graveyard, letters: Letters
) -> None:
    """The second sink has read nothing of it, or did not note it; nobody knows what named it."""
    letters.ask(1, sinks=[FIRST])
    stage = graveyard.stage()
    stage.replay(letters.replays(), letters)
    old, new = AT, ("P2", AT[1])
    stage = graveyard.stage()
    stage.replay(replace(letters.begin([old]), topic_id="P2"), letters)
    assert {each.sink for each in graveyard.commits} == {"first", "second"}
    moves = len(graveyard.first.fences)
    stage = graveyard.stage()
    stage.replay(replace(letters.begin([old]), topic_id="P2"), letters)
    assert len(graveyard.first.fences) == moves
    for sink, end in ((graveyard.first, 1), (graveyard.second, 0)):
        (aside,) = sink.fences[-1].set_aside
        assert aside.reason == LossReason.TOPIC_RECREATED
        assert [(r.topic_id, r.start, r.end) for r in aside.ranges] == [(REPLAYS_ID, end, ENDLESS)]
        assert sink.fences[-1].frontier == {PLACE: 6}
    assert stage.replays_done() == [{old: ENDLESS, new: 0}] * 2
    assert graveyard.first.fences[-1].replayed == {old: ENDLESS, new: 0}
    assert again(graveyard.first, [1]) == [1]


def test_which_topic_it_is_gets_known_with_the_next_batch(
    graveyard: Graveyard, letters: Letters
) -> None:
    """So a request is set aside that nobody has read before it was gone."""
    moves = len(graveyard.first.fences)
    stage = graveyard.stage()
    stage.replay(letters.begin(), letters)
    assert len(graveyard.first.fences) == moves
    graveyard.plan(1, 8)
    stage.process(NO_FRAME, 1)
    assert graveyard.first.fences[-1].replayed == {AT: 0}
