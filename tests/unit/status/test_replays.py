"""Where dead letters were sent again, as status remembers it."""

from dataclasses import replace

from builders import TENANT, UID
from message_builders import make_letter_replay, make_replay, make_replayed
from unit.status.coroutines import WAIT_S, inside
from unit.status.slots import KEY, dead
from unit.status.test_dead_answers import ASKED, now
from unit.status.test_hub import Reader, quiet
from unit.status.worlds import DONE, SHORT, World, world
from waybill_shared.contract.replays import ReplayedLetter, ReplayMessage
from waybill_shared.contract.words import OutcomeKind
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.core.outcomes.dead_letters import DeadOffset, ReplayedAs
from waybill_status.core.outcomes.outcome import Outcome

PIPELINE = (TENANT, UID)


def at(offset: int) -> ReplayedAs:
    return ReplayedAs(topic="replays", partition=3, offset=offset)


def message(*letters: ReplayedLetter) -> ReplayMessage:
    return ReplayMessage(body=make_replay(*letters))


def letter(offset: int) -> str:
    return str(make_replayed(offset).letter)


def test_the_newest_message_of_a_letter_is_known() -> None:
    known = KnownReplays()
    known.accept(message(make_replayed(17, 40), make_replayed(18, 41)))
    known.accept(message(make_replayed(17, 60)))
    assert known.of(PIPELINE, letter(17)) == at(60)
    assert known.of(PIPELINE, letter(18)) == at(41)


def test_it_is_known_that_a_record_was_edited() -> None:
    known = KnownReplays()
    known.accept(message(replace(make_replayed(17, 40), edited="a digest")))
    assert known.of(PIPELINE, letter(17)) == replace(at(40), edited=True)


def test_nothing_is_known_of_other_letters_and_pipelines() -> None:
    known = KnownReplays()
    known.accept(message(make_replayed(17, 40)))
    assert known.of(PIPELINE, letter(18)) is None
    assert known.of((TENANT, "another uid"), letter(17)) is None


def test_a_letter_that_is_still_to_be_replayed_is_nowhere_yet() -> None:
    known = KnownReplays()
    known.accept(ReplayMessage(body=make_letter_replay(17)))
    assert known.of(PIPELINE, letter(17)) is None


def test_beyond_the_bound_the_oldest_are_forgotten() -> None:
    known = KnownReplays(records_max=2)
    known.accept(message(make_replayed(1, 11), make_replayed(2, 12)))
    known.accept(message(make_replayed(1, 11), make_replayed(3, 13)))
    assert known.of(PIPELINE, letter(1)) == at(11)
    assert known.of(PIPELINE, letter(2)) is None
    assert known.of(PIPELINE, letter(3)) == at(13)


@inside(world)
async def test_outcome_says_where_its_dead_stand_and_stays_what_it_was(w: World) -> None:
    w.store.put(DONE, dead(3), dead(4), dead(0, 2), version=1)
    before = await now(w)
    assert before.outcome == OutcomeKind.DEAD_LETTERED
    replay = make_replay(make_replayed(3, 40))
    w.replays.accept(ReplayMessage(body=replace(replay, tenant=KEY[0], pipeline_uid=KEY[1])))
    after = await now(w)
    assert [each.replayed_as for each in exact(after)] == [at(40), None]
    assert unsent(after) == before
    assert await w.tokens.wait(ASKED, WAIT_S) == after


@inside(world)
async def test_nobody_who_waits_is_woken_by_a_replay(w: World) -> None:
    w.store.put(SHORT, dead(3), version=1)
    reader = Reader(w.tokens, ASKED)
    await quiet()
    asked = w.store.letter_reads
    replay = make_replay(make_replayed(3, 40))
    w.replays.accept(ReplayMessage(body=replace(replay, tenant=KEY[0], pipeline_uid=KEY[1])))
    await quiet()
    assert (len(reader.told), w.store.letter_reads) == (1, asked)
    w.store.put(DONE, dead(3), version=2)
    await reader.task
    assert [each.replayed_as for each in exact(reader.told[-1].outcome)] == [at(40)]


def exact(outcome: Outcome) -> list[DeadOffset]:
    return [each for each in outcome.dead if isinstance(each, DeadOffset)]


def unsent(outcome: Outcome) -> Outcome:
    """Without what became of its dead later."""
    dead = [
        replace(each, replayed_as=None) if isinstance(each, DeadOffset) else each
        for each in outcome.dead
    ]
    return replace(outcome, dead=tuple(dead))
