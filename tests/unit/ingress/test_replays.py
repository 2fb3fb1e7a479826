"""Dead letters that are replayed: each once, and a token for exactly those asked for."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocks import FixedClock
from unit.ingress.fakes import RING, FakeDirectory, FakeKafka, unsealed
from unit.ingress.graves import (
    DLQ_ID,
    REPLAYS_ID,
    FakeLetters,
    FakeReplayLog,
    Killed,
    burying_pipeline,
    place,
)
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.replays import ReplayReceipt, Replays
from waybill_ingress.core.dead_letters import (
    BYTES_MAX,
    LETTERS_MAX,
    ExpiredDeadLetter,
    FoundDeadLetter,
)
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.vectors import Span

BOTH = ("copy/copy@1", "copy/lake@1")


class World:
    def __init__(self, record: PipelineRecord | None = None) -> None:
        self.letters = FakeLetters()
        self.log = FakeReplayLog()
        self.directory = FakeDirectory(record or burying_pipeline())
        self.clock = FixedClock()
        self.mint = RandomMint(RING, self.clock)
        registry = Registry(self.directory, self.directory, FakeKafka(), self.mint)
        self.replays = Replays(registry, self.letters, self.log, self.mint)

    async def ask(self, *ids: str, again: bool = False) -> ReplayReceipt:
        return await self.replays.replay(ANYONE, "orders", ids, again=again, request_id="r")

    def replay(self, *ids: str, again: bool = False) -> ReplayReceipt:
        return asyncio.run(self.ask(*ids, again=again))

    def refusal(self, *ids: str) -> Refusal:
        with pytest.raises(Refusal) as refused:
            self.replay(*ids)
        assert self.sent() == []
        return refused.value

    def sent(self) -> list[int]:
        """By the offsets at which they died."""
        return [asked.letter.source for _, asked in self.log.written]


@pytest.fixture
def world() -> World:
    return World()


def spans(done: ReplayReceipt) -> tuple[Span, ...]:
    return tuple(span for part in unsealed(done.token).parts for span in part.spans)


def span(start: int, end: int) -> Span:
    return Span(topic_id=REPLAYS_ID, partition=3, start=start, end=end)


def test_a_letter_has_a_message_and_the_token_its_position(world: World) -> None:
    letter = world.letters.bury(17)
    done = world.replay(letter)
    ((position, asked),) = world.log.written
    assert (str(asked.letter), asked.letter_topic_id) == (letter, DLQ_ID)
    assert (asked.stage, asked.sinks, asked.size) == ("copy@1", BOTH, len(b'\x00k{"id": 17}'))
    assert done == ReplayReceipt(
        token=done.token, replayed=1, already=0, sinks=("copy/copy", "copy/lake")
    )
    (part,) = unsealed(done.token).parts
    assert (part.spans, part.into) == ((span(position.offset, position.offset + 1),), BOTH)
    assert part.counted


def test_the_same_again_is_the_same_token_and_nothing_is_written(world: World) -> None:
    letters = [world.letters.bury(offset) for offset in (17, 3, 40)]
    first = world.replay(*letters)
    for ids in (letters, letters[::-1], [*letters, letters[0]]):
        assert world.replay(*ids) == replace(first, replayed=0, already=3)
    assert world.sent() == [17, 3, 40]
    assert len(world.log.answers) == 1


def test_part_of_what_was_replayed_has_a_token_of_its_own_which_stays_the_same(
    world: World,
) -> None:
    one, other = world.letters.bury(1), world.letters.bury(2)
    both = world.replay(one, other)
    part = world.replay(other)
    assert part.token != both.token
    assert spans(part) == (span(51, 52),)
    assert world.replay(other).token == part.token
    assert world.replay(one, other).token == both.token
    assert world.sent() == [1, 2]


def test_what_is_new_among_what_was_replayed_is_replayed_and_the_token_has_both(
    world: World,
) -> None:
    old, new = world.letters.bury(1), world.letters.bury(2)
    world.replay(old)
    world.clock.now += TOKEN_LIFE_MS // 2
    world.directory.records["orders"] = replace(burying_pipeline(), generation=3)
    done = world.replay(old, new)
    assert (done.replayed, done.already, world.sent()) == (1, 1, [1, 2])
    token = unsealed(done.token)
    assert [(part.generation, part.spans) for part in token.parts] == [
        (2, (span(50, 51),)),
        (3, (span(53, 54),)),
    ]
    assert token.lives_since == FixedClock().now_ms()
    assert world.replay(new, old).token == done.token


def test_again_replays_all_once_more_and_later_requests_mean_the_newest(world: World) -> None:
    one, other = world.letters.bury(1), world.letters.bury(2)
    first = world.replay(one, other)
    again = world.replay(one, again=True)
    assert (again.replayed, again.already, spans(again)) == (1, 0, (span(54, 55),))
    assert world.replay(one).token == again.token
    both = world.replay(one, other)
    assert both.token != first.token
    assert spans(both) == (span(51, 52), span(54, 55))
    assert world.sent() == [1, 2, 1]


def test_two_letters_of_one_record_go_to_a_sink_each(world: World) -> None:
    one = world.letters.bury(5, 200, sink="copy/lake@1", reason="refused")
    other = world.letters.bury(5, 201, sink="copy/copy@1", reason="refused")
    done = world.replay(one, other)
    assert done.replayed == 2
    assert [asked.sinks for _, asked in world.log.written] == [("copy/copy@1",), ("copy/lake@1",)]
    assert [part.into for part in unsealed(done.token).parts] == [
        ("copy/copy@1",),
        ("copy/lake@1",),
    ]
    assert world.replay(other).already == 1


def test_a_record_that_died_again_is_another_letter(world: World) -> None:
    world.replay(world.letters.bury(17))
    done = world.replay(world.letters.bury(17, 300))
    assert (done.replayed, world.sent()) == (1, [17, 17])


def test_what_no_token_is_old_enough_for_is_forgotten(world: World) -> None:
    letter = world.letters.bury(17)
    world.replay(letter)
    world.clock.now += TOKEN_LIFE_MS
    assert world.replay(letter).replayed == 1


@pytest.mark.parametrize("point", ["send", "conclude"])
def test_killed_before_it_counts_nothing_is_replayed(world: World, point: str) -> None:
    letter = world.letters.bury(17)
    world.log.at[point] = Killed()
    with pytest.raises(Killed):
        world.replay(letter)
    assert world.sent() == []
    assert world.replay(letter).replayed == 1
    assert world.sent() == [17]


def test_killed_between_the_transaction_and_the_answer_it_is_replayed_once(world: World) -> None:
    letter = world.letters.bury(17)
    world.log.at["concluded"] = Killed()
    with pytest.raises(Killed):
        world.replay(letter)
    done = world.replay(letter)
    assert (done.replayed, done.already, spans(done)) == (0, 1, (span(50, 51),))
    assert done.token == world.log.answers[0].token
    assert world.sent() == [17]


def test_two_at_the_same_time_do_it_once_and_who_is_shut_out_may_ask_again(world: World) -> None:
    letter = world.letters.bury(17)

    async def both() -> tuple[ReplayReceipt | BaseException, ReplayReceipt | BaseException]:
        return await asyncio.gather(world.ask(letter), world.ask(letter), return_exceptions=True)

    first, second = asyncio.run(both())
    assert isinstance(first, Retryable)
    assert isinstance(second, ReplayReceipt)
    assert world.replay(letter) == replace(second, replayed=0, already=1)
    assert world.sent() == [17]


@pytest.mark.parametrize("since", [None, FixedClock().now_ms()])
def test_letter_that_retention_took_is_gone_and_says_since_when(
    world: World, since: int | None
) -> None:
    world.letters.there[place(4)] = ExpiredDeadLetter(since=since)
    refused = world.refusal(str(place(4)))
    assert refused.slug == "dead_letter_gone"
    told = "it has nothing" if since is None else "it has records since 2026-11-18T11:06:40.000Z"
    assert refused.detail.endswith(told)


def test_letter_of_another_life_or_place_is_not_found(world: World) -> None:
    world.letters.bury(1, uid="uid-0")
    world.letters.bury(4, partition="x")
    world.letters.bury(2)
    elsewhere = LetterId(topic="orders.in.dlq", partition=0, offset=102, source=3)
    world.letters.there[elsewhere] = world.letters.there[place(2)]
    for where in (place(1), place(4), place(5), elsewhere):
        assert world.refusal(str(where)).slug == "dead_letter_not_found"


@pytest.mark.parametrize("text", ["", "x", "in.dlq:0:1", "a:0:01:2", "a/b:0:1:2", "a:-1:1:2"])
def test_text_that_is_no_id_is_not_found(world: World, text: str) -> None:
    assert world.refusal(text).slug == "dead_letter_not_found"


def test_all_that_is_wrong_is_named_and_the_first_kind_counts(world: World) -> None:
    world.letters.there[place(4)] = ExpiredDeadLetter(since=None)
    good, lost = world.letters.bury(1), world.letters.bury(2, stage="gone")
    refused = world.refusal(good, lost, str(place(4)), str(place(9)), str(place(9)))
    assert refused.slug == "dead_letter_not_found"
    assert refused.detail.endswith("; and 3 more, so none was replayed")
    assert [(each["index"], each["problem"]) for each in rejected(refused)] == [
        (1, "sinks_gone"),
        (2, "dead_letter_gone"),
        (3, "dead_letter_not_found"),
        (4, "dead_letter_not_found"),
    ]


def test_too_many_are_refused(world: World) -> None:
    assert world.refusal(*["x"] * (LETTERS_MAX + 1)).slug == "too_many_dead_letters"
    world.letters.bytes_each = BYTES_MAX
    letters = [world.letters.bury(offset) for offset in (1, 2)]
    assert world.refusal(*letters).members["bytes_max"] == BYTES_MAX


def rejected(refusal: Refusal) -> Sequence[dict[str, object]]:
    found = refusal.members["rejected"]
    assert isinstance(found, list)
    return found


REQUESTS = st.lists(
    st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.booleans()), max_size=6
)


@given(REQUESTS, st.sets(st.integers(0, 6)))
def test_whatever_is_asked_each_is_replayed_once_for_each_time_that_it_was_to_be(
    requests: list[tuple[list[int], bool]], killed: set[int]
) -> None:
    """The token has the last message of each, whoever was killed in between."""
    world = World()
    letters = [world.letters.bury(offset) for offset in range(5)]
    expected: list[int] = []
    for number, (wanted, again) in enumerate(requests):
        unique = list(dict.fromkeys(wanted))
        expected += [offset for offset in unique if again or offset not in expected]
        ids = [letters[offset] for offset in wanted]
        if number in killed:
            world.log.at["concluded"] = Killed()
            try:
                world.replay(*ids, again=again)
            except Killed:
                pass
            world.log.at.clear()
        else:
            world.replay(*ids, again=again)
        newest = {asked.letter.source: at.offset for at, asked in world.log.written}
        covered = {at for each in spans(world.replay(*ids)) for at in range(each.start, each.end)}
        assert covered == {newest[offset] for offset in unique}
    assert world.sent() == expected


def test_a_topic_that_was_created_again_has_other_letters_of_the_same_ids() -> None:
    world = World()
    letter = world.letters.bury(7)
    world.replay(letter)
    there = world.letters.there
    found = there[place(7)]
    assert isinstance(found, FoundDeadLetter)
    there[place(7)] = replace(found, topic_id="cmVuZXdlZC5kZWFkLnRvcA")
    again = world.replay(letter)
    assert (again.replayed, again.already) == (1, 0)
