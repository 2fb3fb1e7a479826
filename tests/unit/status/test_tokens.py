"""Asking, waiting and following: one reading for many, and no answer from missing knowledge."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from clocks import NOW
from unit.status.coroutines import WAIT_S, inside
from unit.status.slots import life, record, slot, span, token
from unit.status.worlds import DONE, SHORT, World, settled, world
from waybill_shared.contract.errors import Refusal, TokenRefused
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.outcome import Outcome


@inside(world)
async def test_many_tokens_cost_one_reading(w: World) -> None:
    w.store.put(DONE, version=1)
    outcomes = await w.tokens.now([token(span(0, n + 1)) for n in range(8)])
    kinds = [each.outcome for each in outcomes if isinstance(each, Outcome)]
    assert kinds == [OutcomeKind.COMPLETE] * 5 + [OutcomeKind.IN_PROGRESS] * 3
    assert w.store.reads == 1
    assert w.store.history_reads == 2


@inside(world)
async def test_a_wait_ends_when_the_outcome_is_final(w: World) -> None:
    w.store.put(SHORT, version=1)
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    assert not waiting.done()
    w.store.put(DONE, version=2)
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_a_wait_ends_with_the_last_outcome_when_the_time_is_over(w: World) -> None:
    w.store.put(SHORT, version=1)
    assert (await w.tokens.wait(token(span(0, 5)), 0.02)).outcome == OutcomeKind.IN_PROGRESS


@inside(world)
async def test_many_are_waited_for_until_the_last_is_final(w: World) -> None:
    w.store.put(SHORT, version=1)
    asked = [token(span(0, 5)), token(span(0, 4)), token(uid="nobody's", issued_at=0)]
    waiting = asyncio.create_task(w.tokens.wait_for_all(asked, WAIT_S))
    await settled()
    assert not waiting.done()
    w.store.put(DONE, version=2)
    *told, refused = await waiting
    assert [each.outcome for each in told if isinstance(each, Outcome)] == [
        OutcomeKind.COMPLETE
    ] * 2
    assert isinstance(refused, TokenRefused)


@inside(world)
async def test_many_are_told_as_they_are_when_the_time_is_over(w: World) -> None:
    w.store.put(SHORT, version=1)
    (outcome,) = await w.tokens.wait_for_all([token(span(0, 5))], 0.02)
    assert isinstance(outcome, Outcome)
    assert outcome.outcome == OutcomeKind.IN_PROGRESS


@inside(world)
async def test_unknown_waits_too(w: World) -> None:
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    assert not waiting.done()
    w.store.put(DONE, version=1)
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_many_waiters_cost_one_reading_a_change(w: World) -> None:
    w.store.put(SHORT, version=1)
    waits = [asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S)) for _ in range(100)]
    await settled()
    before = w.store.reads
    w.store.put(DONE, version=2)
    outcomes = await asyncio.gather(*waits)
    assert {outcome.outcome for outcome in outcomes} == {OutcomeKind.COMPLETE}
    assert w.store.reads - before <= 2
    assert w.store.history_reads <= 6


@inside(world)
async def test_the_batch_is_that_of_the_newest_change(w: World) -> None:
    w.store.put(SHORT, version=1)
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    early = await w.tokens.wait(token(span(0, 4)), WAIT_S)
    assert early.stages[1].batch == 1
    w.store.put(DONE, version=2)
    assert (await waiting).stages[1].batch == 2


@inside(world)
async def test_a_change_whose_wake_up_is_lost_is_noticed(w: World) -> None:
    w.store.put(SHORT, version=1)
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    w.store.put(DONE, version=2, wake=False)
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_a_slot_that_was_lost_and_has_the_same_number_again_is_noticed(w: World) -> None:
    """Redis counts anew from nothing; what it published was lost."""
    w.store.put(SHORT, version=2, mark="1.7")
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    w.store.put(DONE, version=2, mark="1.9", wake=False)
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_a_tracker_that_falls_silent_is_noticed_while_waiting(w: World) -> None:
    w.store.put(SHORT, version=1)
    changes = w.tokens.follow(token(span(0, 5)))
    first = await anext(changes)
    assert first is not None
    assert first.outcome.outcome == OutcomeKind.IN_PROGRESS
    w.store.age(6_000)
    second = await anext(changes)
    assert second is not None
    assert second.outcome.reason == "tracker_silent"
    w.store.age(0)
    third = await anext(changes)
    assert third is not None
    assert third.outcome.outcome == OutcomeKind.IN_PROGRESS
    await changes.aclose()  # type: ignore[attr-defined]


@inside(world)
async def test_following_tells_each_change_and_ends_with_a_final_one(w: World) -> None:
    w.store.put(slot(copy=(3,), lake=(3,)), version=1)
    seen: list[tuple[OutcomeKind, str]] = []

    async def follow() -> None:
        async for change in w.tokens.follow(token(span(0, 5))):
            assert change is not None
            seen.append((change.outcome.outcome, change.version))

    following = asyncio.create_task(follow())
    await settled()
    w.store.put(SHORT, version=2)
    await settled()
    w.store.put(SHORT, version=3)
    await settled()
    w.store.put(DONE, version=4)
    await following
    assert seen == [
        (OutcomeKind.IN_PROGRESS, "1"),
        (OutcomeKind.IN_PROGRESS, "2"),
        (OutcomeKind.COMPLETE, "4"),
    ]


@inside(world)
async def test_following_tells_what_a_driver_waits_for(w: World) -> None:
    running = replace(SHORT, lifecycle=life("Running"))
    w.store.put(running, version=1)
    changes = w.tokens.follow(token(span(0, 5)))
    seen = []
    for version, blocked_by in enumerate([None, "blocked_by_open_transaction", None], start=1):
        w.store.put(replace(running, blocked_by=blocked_by), version=version)
        change = await anext(changes)
        assert change is not None
        seen.append(change.outcome.stages[1].blocked_by)
    assert seen == [None, "blocked_by_open_transaction", None]
    await changes.aclose()  # type: ignore[attr-defined]


@inside(world)
async def test_without_redis_nothing_is_known(w: World) -> None:
    w.store.put(DONE, version=1)
    w.store.away = True
    (outcome,) = await w.tokens.now([token(span(0, 5))])
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.UNKNOWN, "redis_away")
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    w.store.away = False
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_complete_is_not_told_without_its_batches(w: World) -> None:
    w.store.put(DONE, version=1)
    w.store.histories_away = True
    assert await w.kind(token(span(0, 5))) == OutcomeKind.UNKNOWN
    waiting = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    assert not waiting.done()
    w.store.histories_away = False
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_a_token_of_nobody_is_refused_once_that_is_sure(w: World) -> None:
    """However old it seems: clocks differ, and a follower may stand still."""
    asked = [token(span(0, n + 1), uid="nobody", issued_at=NOW - 60_000) for n in range(3)]
    w.owners.known = False
    assert {await w.kind(each) for each in asked} == {OutcomeKind.UNKNOWN}
    waiting = asyncio.create_task(w.tokens.wait(asked[0], WAIT_S))
    await settled()
    assert not waiting.done()
    w.owners.known, w.owners.asked = True, 0
    assert all(isinstance(each, TokenRefused) for each in await w.tokens.now(asked))
    assert w.owners.asked == 1
    with pytest.raises(TokenRefused):
        await waiting


@inside(world)
async def test_what_is_known_by_now_is_nobodys_no_more(w: World) -> None:
    w.owners.late = record("other", "uid-2")
    assert await w.kind(token(span(0, 5), uid="uid-2", issued_at=0)) == OutcomeKind.UNKNOWN
    (other,) = await w.tokens.now([token(span(0, 5), uid="uid-2")])
    assert isinstance(other, Outcome)
    assert other.reason == "slot_missing"


@inside(world)
async def test_a_pipeline_that_becomes_known_ends_the_doubt(w: World) -> None:
    asked = token(span(0, 5), uid="uid-2")
    w.owners.known = False
    waiting = asyncio.create_task(w.tokens.wait(asked, WAIT_S))
    await settled()
    w.owners.directory.accept(record("other", "uid-2"))
    w.tokens.directory_changed.notify()
    await settled()
    w.hub.close()
    assert (await waiting).reason == "slot_missing"


@inside(partial(world, waiters_max=1))
async def test_waiters_are_limited_and_leave_nothing_behind(w: World) -> None:
    w.store.put(SHORT, version=1)
    held = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    with pytest.raises(Refusal, match="requests wait already"):
        await w.tokens.wait(token(span(0, 5)), WAIT_S)
    held.cancel()
    with suppress(asyncio.CancelledError):
        await held
    assert (await w.tokens.wait(token(span(0, 5)), 0.01)).outcome == OutcomeKind.IN_PROGRESS


@inside(world)
async def test_held_requests_are_answered_when_the_process_ends(w: World) -> None:
    w.store.put(SHORT, version=1)
    held = asyncio.create_task(w.tokens.wait(token(span(0, 5)), WAIT_S))
    await settled()
    w.hub.close()
    assert (await held).outcome == OutcomeKind.IN_PROGRESS
