"""Watches are told once and never too early, whatever Kafka says and whoever takes over."""

import asyncio
import random

import pytest

from unit.status.coroutines import WAIT_S, inside
from unit.status.fakes import FakeOwners
from unit.status.slots import record, sealed, slot, span, token
from unit.status.watching import TEXT, Scene, scene, watch
from unit.status.worlds import DONE, SHORT
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.status_events import token_hash
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.watches import as_closed
from waybill_shared.contract.words import EventType, OutcomeKind, WatchEnd, WatchState
from waybill_status.app.watches import watch_judge, watchers

SEEDS = range(20)


pytestmark = pytest.mark.usefixtures("quick_watches")


@inside(scene)
async def test_a_watch_is_told_when_its_token_is_final_and_not_before(s: Scene) -> None:
    s.store.put(SHORT, version=1)
    process = await s.process()
    s.log.write(watch("a"), watch("b"))
    await s.quiet()
    assert s.log.events == []
    s.store.put(DONE, version=2)
    first, second = await s.reports(2)
    assert {first.subject, second.subject} == {"a", "b"}
    assert (first.type, first.tenant, first.pipeline) == (
        EventType.TOKEN_FINAL,
        DEFAULT_TENANT,
        "orders",
    )
    outcome = first.data["outcome"]
    assert isinstance(outcome, dict)
    assert outcome["outcome"] == WatchEnd.COMPLETE
    assert first.data["token_hash"] == token_hash(TEXT)
    assert first.data["labels"] == {"batch": "7"}
    assert TEXT not in str(s.log.events)
    known = process.book.get(DEFAULT_TENANT, "a")
    assert known is not None
    assert (known.state, known.ended_as, known.event_id, known.token) == (
        WatchState.REPORTED,
        WatchEnd.COMPLETE,
        "a.final",
        "",
    )


@inside(scene)
async def test_what_is_final_already_is_told_at_once_also_after_a_restart(s: Scene) -> None:
    s.store.put(DONE, version=1)
    s.log.write(watch("before"))
    await s.process()
    s.log.write(watch("after"))
    assert {each.subject for each in await s.reports(2)} == {"before", "after"}


@inside(scene)
async def test_a_watch_that_was_closed_is_not_told(s: Scene) -> None:
    s.store.put(SHORT, version=1)
    process = await s.process()
    s.log.write(watch("a"), watch("b"))
    await s.quiet()
    s.log.write(as_closed(watch("a")))
    await s.quiet()
    s.store.put(DONE, version=2)
    assert [each.subject for each in await s.reports(1)] == ["b"]
    assert process.book.get(DEFAULT_TENANT, "a") is None


@inside(scene)
async def test_a_token_that_expires_is_told_as_expired(s: Scene) -> None:
    s.store.put(SHORT, version=1)
    await s.process()
    s.log.write(watch("a"))
    await s.quiet()
    s.clock.now += TOKEN_LIFE_MS + 1
    (event,) = await s.reports(1)
    assert (event.data["ended_as"], event.data["outcome"]) == (WatchEnd.EXPIRED, None)


@inside(scene)
async def test_a_token_that_no_key_opens_here_is_tried_again_until_it_expires(s: Scene) -> None:
    """Ingress could open it: it is this process that lacks the key."""
    await s.process()
    s.log.write(watch("a", "wb1.of-another"))
    await s.quiet()
    assert s.log.events == []
    s.clock.now += TOKEN_LIFE_MS + 1
    (event,) = await s.reports(1)
    assert event.data["ended_as"] == WatchEnd.EXPIRED


@inside(scene)
async def test_a_pipeline_that_is_not_known_yet_is_waited_for(s: Scene) -> None:
    s.owners = FakeOwners()
    s.owners.known = False
    s.store.put(DONE, version=1)
    await s.process()
    s.log.write(watch("a"))
    await s.quiet()
    assert s.log.events == []
    s.owners.directory.accept(record())
    assert len(await s.reports(1)) == 1


@pytest.mark.parametrize("fault", ["before", "after"])
@inside(scene)
async def test_what_kafka_does_not_say_is_found_out(s: Scene, fault: str) -> None:
    s.store.put(DONE, version=1)
    s.log.faults = [fault]
    await s.process()
    s.log.write(watch("a"))
    assert [each.id for each in await s.reports(1)] == ["a.final"]


@inside(scene)
async def test_who_was_shut_out_by_one_that_was_late_takes_it_back(s: Scene) -> None:
    """Else nobody would tell of that partition until the group changes."""
    s.store.put(SHORT, version=1)
    await s.process()
    s.log.write(watch("a"))
    await s.quiet()
    s.log.owner += 1  # a claim of a process that has lost its share meanwhile
    s.store.put(DONE, version=2)
    assert len(await s.reports(1)) == 1


@inside(scene)
async def test_what_kafka_never_takes_keeps_no_others_back(s: Scene) -> None:
    s.store.put(SHORT, version=1)
    await s.process()
    s.log.never = "w3"
    s.log.write(*(watch(f"w{number}") for number in range(8)))
    await s.quiet()
    s.store.put(DONE, version=2)
    subjects = {each.subject for each in await s.reports(7)}
    assert subjects == {f"w{number}" for number in range(8) if number != 3}


@inside(scene)
async def test_an_outcome_that_is_too_large_is_told_without_its_lists(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_judge, "EVENT_BYTES_MAX", 900)
    s.store.put(DONE, version=1)
    await s.process()
    s.log.write(watch("a"))
    (event,) = await s.reports(1)
    outcome = event.data["outcome"]
    assert isinstance(outcome, dict)
    assert (outcome["outcome"], outcome["shortened"]) == (WatchEnd.COMPLETE, True)
    assert "stages" not in outcome


@inside(scene)
async def test_who_was_shut_out_tells_nothing_more(s: Scene) -> None:
    s.store.put(SHORT, version=1)
    await s.process()
    s.log.write(watch("a"))
    await s.quiet()
    await s.process()  # and the first one believes that the partition is still its own
    await s.quiet()
    s.store.put(DONE, version=2)
    assert len(await s.reports(1)) == 1


@pytest.mark.parametrize("seed", SEEDS)
@inside(scene)
async def test_each_is_told_once_among_faults_and_changes_of_owner(s: Scene, seed: int) -> None:
    dice = random.Random(seed)
    s.store.put(SHORT, version=1)
    processes = [await s.process(), await s.process()]
    processes[0].shares.give()
    for number in range(60):
        text = sealed(token(span(0, dice.randrange(1, 12))))
        s.log.write(watch(f"w{number}", text))
        if dice.random() < 0.2:
            owner = dice.randrange(2)
            processes[owner].shares.give(0)
            processes[1 - owner].shares.give()
        if dice.random() < 0.2:
            s.log.faults.append(dice.choice(["before", "after"]))
        if dice.random() < 0.3:
            end = min(12, number // 4)
            s.store.put(slot(copy=(end,), lake=(end,)), version=2 + number)
        await asyncio.sleep(0.001)
    s.store.put(slot(copy=(99,), lake=(99,)), version=99)
    ids = [each.id for each in await s.reports(60)]
    assert sorted(ids) == sorted(f"w{number}.final" for number in range(60))


@inside(scene)
async def test_a_watch_costs_no_question_to_redis_before_its_token_is_final(s: Scene) -> None:
    """And whoever waits for the same token hears of each change all the same."""
    s.store.put(SHORT, version=1)
    process = await s.process()
    s.log.write(watch("a"))
    await s.quiet()
    assert s.store.history_reads == 0
    asked = token(span(0, 5))
    claims = await process.tokens.claims(asked)
    assert isinstance(claims, list)
    async with process.hub.watch(asked, claims) as question:
        assert question.change is not None
        assert question.change.outcome.outcome == OutcomeKind.IN_PROGRESS
        s.store.put(DONE, version=2)
        change = await question.after(question.change, WAIT_S)
        assert change is not None
        assert change.outcome.final
    assert len(await s.reports(1)) == 1


@inside(scene)
async def test_what_is_told_leaves_nothing_behind(s: Scene) -> None:
    s.store.put(DONE, version=1)
    process = await s.process()
    for begin in range(0, 3_000, 500):
        s.log.write(*(watch(f"w{number}") for number in range(begin, begin + 500)))
        await s.reports(begin + 500)
    ((owned, _),) = process.watchers._owned.values()
    assert (owned._open, owned._due, owned._reported, owned._fresh) == ({}, {}, set(), [])
    assert len(owned._expiring) <= 1_500
    assert process.hub._questions == {}


@inside(scene)
async def test_what_is_lost_and_taken_away_at_once_is_given_up(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "LOOK_S", 0)
    s.store.put(DONE, version=1)
    process = await s.process()
    s.log.taken_away = process.shares.give
    s.log.write(watch("a"))
    await s.quiet()
    assert s.log.events == []
    process.shares.give(0)
    assert [each.subject for each in await s.reports(1)] == ["a"]
