"""Events go to webhooks until these take them, whatever they say and whoever takes over."""

import asyncio
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from builders import NOW as MADE
from unit.status.fakes import NOW
from unit.status.test_tokens import DONE
from unit.status.watching import Process, Scene, run, watch
from watch_builders import make_delivery
from waybill_shared.contract.codec import to_json
from waybill_shared.contract.deliveries import DeliveryBook, WebhookDelivery
from waybill_shared.contract.watches import closed
from waybill_shared.contract.words import DeliveryState, EventType, WatchState
from waybill_status.app import due_partition, turns, watched_partition, watchers
from waybill_status.core.deliveries import (
    FIRST_PAUSE_MS,
    JITTER,
    PAUSE_MS_MAX,
    TRIED_MS,
    Answered,
    after_attempt,
    wait_ms,
)

HOUR_MS = 3_600_000
HOOK = "https://hooks.example/a?key=1"
BUSY = Answered(status=503, error="it answered 503")
SILENT = Answered(error="nobody answers", silent=True)


def attempts(answer: Answered, *, luck: float = 0.0) -> list[WebhookDelivery]:
    """Each as it was left, when every attempt is made in time and gets that answer."""
    found = [replace(make_delivery(), since=MADE, next_at=MADE)]
    while found[-1].due:
        last = found[-1]
        found.append(after_attempt(last, answer, now_ms=last.next_at, luck=luck))
    return found[1:]


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_whatever_is_well_is_delivered_and_nothing_secret_is_left(status: int) -> None:
    (only,) = attempts(Answered(status=status))
    assert (only.state, only.attempts, only.error) == (DeliveryState.DELIVERED, 1, None)
    assert (only.event, only.webhook.secret) == ("", "")


@pytest.mark.parametrize("answer", [BUSY, SILENT, Answered(status=302, error="moved")])
def test_all_else_is_tried_for_a_day_at_growing_pauses(answer: Answered) -> None:
    tried = attempts(answer)
    times = [each.at - MADE for each in tried if each.at is not None]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:4] == [5_000, 10_000, 20_000, 40_000]
    assert max(pauses) == PAUSE_MS_MAX
    assert times[-1] == TRIED_MS
    assert [each.state for each in tried] == [DeliveryState.DUE] * 33 + [DeliveryState.FAILED]
    assert {each.error for each in tried} == {answer.error}
    assert all(each.event for each in tried[:-1])


def test_one_that_wants_no_more_is_left_alone() -> None:
    (only,) = attempts(Answered(status=410, error="it answered 410"))
    assert (only.state, only.attempts) == (DeliveryState.FAILED, 1)


def test_luck_makes_pauses_longer_and_a_webhook_may_ask_for_more() -> None:
    one = after_attempt(make_delivery(), BUSY, now_ms=MADE, luck=1.0)
    assert one.next_at - MADE == FIRST_PAUSE_MS * (1 + JITTER)
    asked = replace(BUSY, retry_after_ms=2 * HOUR_MS)
    assert (
        after_attempt(make_delivery(), asked, now_ms=MADE, luck=0.5).next_at == MADE + 2 * HOUR_MS
    )
    day = replace(BUSY, retry_after_ms=99 * HOUR_MS)
    assert after_attempt(make_delivery(), day, now_ms=MADE, luck=0.5).next_at == MADE + TRIED_MS


def test_a_clock_that_was_set_back_makes_nobody_wait_longer() -> None:
    due = after_attempt(make_delivery(), BUSY, now_ms=MADE, luck=0.0)
    assert wait_ms(due, MADE) == 5_000
    assert wait_ms(due, MADE + 6_000) == 0
    assert wait_ms(make_delivery(), MADE - 99 * HOUR_MS) <= PAUSE_MS_MAX * (1 + JITTER)
    assert wait_ms(due, MADE - 99 * HOUR_MS) <= PAUSE_MS_MAX * (1 + JITTER)
    asked = after_attempt(
        make_delivery(), replace(BUSY, retry_after_ms=3 * HOUR_MS), now_ms=MADE, luck=0.0
    )
    assert wait_ms(asked, MADE - 99 * HOUR_MS) == 3 * HOUR_MS


def test_a_book_knows_the_newest_and_forgets_the_oldest_that_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("waybill_shared.contract.deliveries.ENDED_MAX", 2)
    book, due = DeliveryBook(), make_delivery()
    over = [replace(due.ended(DeliveryState.DELIVERED, NOW + n), watch=f"w{n}") for n in range(4)]
    for each in (due, *over, replace(due, watch="w3")):
        book.accept(each)
    assert [book.get(f"w{n}") for n in range(4)] == [None, None, *over[2:]]
    assert [*book.all_due()] == [due]
    ended = due.ended(DeliveryState.FAILED, NOW + 9, "no")
    book.accept(ended)
    assert (book.get(due.watch), [*book.all_due()]) == (ended, [])
    book.accept(due)
    assert book.get(due.watch) == ended, "what is heard again takes nothing back"
    book.accept(replace(due, turn=1))
    book.accept(ended)
    assert book.get(due.watch) == replace(due, turn=1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (watchers, "LOOK_S"),
        (watchers, "RETRY_S"),
        (watched_partition, "TICK_S"),
        (watched_partition, "RETRY_S"),
        (due_partition, "RETRY_S"),
    ):
        monkeypatch.setattr(module, name, 0.005)
    monkeypatch.setattr(due_partition, "wait_ms", lambda delivery, now_ms: 1)
    monkeypatch.setattr(turns, "REST_S_MAX", 0.01)


async def delivered(s: Scene, count: int) -> None:
    while sum(not each.due for each in s.log.deliveries) < count:
        await asyncio.sleep(0.005)
    await s.quiet()


def test_what_is_told_is_delivered_once_as_it_was_told() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(watch("a", url=HOOK), watch("none"))
        await s.told(2)
        await delivered(s, 1)
        ((sent, now_s),) = s.receiver.sent
        (event,) = [each for each in s.log.events if each.subject == "a"]
        assert [each.event == sent.event for each in s.log.deliveries] == [True, False]
        assert (sent.event, sent.event_id, now_s) == (to_json(event), "a.final", NOW // 1000)
        assert process.detail("a").state == WatchState.DELIVERED
        assert process.detail("none").state == WatchState.TOLD
        shown = process.detail("a").webhook
        assert shown is not None
        assert (shown.attempts, shown.url) == (1, "https://hooks.example/a")

    run(scene)


def test_each_attempt_is_noted_before_the_next_also_while_kafka_is_away() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.says["a"] = [SILENT, BUSY, SILENT]
        s.log.note_faults = ["away"] * 7
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        assert [sent.attempts for sent, _ in s.receiver.sent] == [0, 1, 2, 3]
        assert [each.attempts for each in s.log.deliveries] == [0, 1, 2, 3, 4]
        assert process.detail("a").state == WatchState.DELIVERED

    run(scene)


def test_one_that_is_given_up_is_told_as_an_event() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.says["a"] = [BUSY, Answered(status=410, error="it answered 410")]
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        final, failed = await s.told(2)
        assert failed.type == EventType.WEBHOOK_FAILED
        assert (failed.id, failed.subject, final.id) == ("a.failed.0", "a", "a.final")
        assert failed.data == {
            "watch": "a",
            "url": "https://hooks.example/a",
            "event_id": "a.final",
            "attempts": 2,
            "error": "it answered 410",
            "labels": {"batch": "7"},
        }
        assert process.detail("a").state == WatchState.FAILED

    run(scene)


async def again(s: Scene, process: Process, count: int) -> None:
    """As ingress does it."""
    known = process.book.find("a")
    assert known is not None
    s.log.write(replace(known, redeliveries=known.redeliveries + 1, redelivery_at=NOW))
    await delivered(s, count)


def test_what_was_delivered_or_given_up_is_sent_again_when_it_is_asked_for() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.says["a"] = [Answered(status=410, error="no")]
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        await again(s, process, 2)
        assert process.detail("a").state == WatchState.DELIVERED
        await again(s, process, 3)
        first, second, third = [sent for sent, _ in s.receiver.sent]
        assert first.event == second.event == third.event
        assert [each.turn for each in (first, second, third)] == [0, 1, 2]

    run(scene)


def test_it_is_shown_as_due_from_when_it_is_asked_for() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        process.shares.give()
        await s.quiet()
        known = process.book.find("a")
        assert known is not None
        s.log.write(replace(known, redeliveries=1, redelivery_at=NOW))
        shown = process.detail("a")
        assert shown.webhook is not None
        assert (shown.state, shown.webhook.state, shown.webhook.attempts) == (
            WatchState.TOLD,
            DeliveryState.DUE,
            0,
        )
        process.shares.give(0)
        await delivered(s, 2)
        assert process.detail("a").state == WatchState.DELIVERED

    run(scene)


def test_an_event_that_is_not_kept_any_more_is_said_to_be_so() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        s.log.events.clear()
        await again(s, process, 2)
        shown = process.detail("a").webhook
        assert shown is not None
        assert (shown.state, shown.last_error) == (DeliveryState.FAILED, due_partition.FORGOTTEN)

    run(scene)


def test_a_watch_that_is_deleted_is_tried_no_more() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.hold.clear()
        process = await s.process()
        s.log.write(watch("a", url=HOOK), watch("b", url=HOOK))
        await s.told(2)
        while not s.receiver.sent:
            await asyncio.sleep(0.005)
        first = s.receiver.sent[0][0].watch
        known = process.book.find(first)
        assert known is not None
        s.log.write(closed(known))
        await delivered(s, 1)
        s.receiver.hold.set()
        await delivered(s, 2)
        ended = {each.watch: each for each in s.log.deliveries if not each.due}
        assert ended[first].error == due_partition.UNWATCHED
        assert len(s.log.events) == 2, "whoever deletes it knows"
        assert len(s.receiver.sent) == 2

    run(scene)


def test_a_host_that_hangs_holds_up_no_other() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.hold.clear()
        await s.process()
        s.log.write(*(watch(f"slow{n}", url="https://slow.example/") for n in range(100)))
        s.log.write(*(watch(f"w{n}", url=f"https://h{n}.example/") for n in range(30)))
        await s.told(130)
        while len(s.receiver.sent) < 31:
            await asyncio.sleep(0.005)
        await s.quiet()
        hosts = [sent.webhook.url for sent, _ in s.receiver.sent]
        assert hosts.count("https://slow.example/") == 1
        assert len(hosts) == 31
        s.receiver.hold.set()
        await delivered(s, 130)

    run(scene)


def test_no_more_than_so_many_are_sent_at_once() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.hold.clear()
        await s.process()
        s.log.write(*(watch(f"w{n}", url=f"https://h{n}.example/") for n in range(80)))
        await s.told(80)
        while len(s.receiver.sent) < turns.AT_ONCE:
            await asyncio.sleep(0.005)
        await s.quiet()
        assert len(s.receiver.sent) == turns.AT_ONCE
        s.receiver.hold.set()
        await delivered(s, 80)

    run(scene)


def test_those_who_did_not_answer_have_few_turns_at_once() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        names = [f"dead{n}" for n in range(30)]
        for name in names:
            s.receiver.says[name] = [SILENT, SILENT]
        await s.process()
        s.log.write(*(watch(name, url=f"https://{name}.example/") for name in names))
        while len(s.receiver.sent) < len(names):
            await asyncio.sleep(0)
        s.receiver.hold.clear()
        await s.quiet()
        assert len(s.receiver.sent) <= len(names) + turns.SILENT_AT_ONCE
        s.log.write(watch("well", url="https://well.example/"))
        while s.receiver.sent[-1][0].watch != "well":
            await asyncio.sleep(0.005)
        s.receiver.hold.set()
        await delivered(s, 31)

    run(scene)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_takes_over_repeats_one_attempt_at_most(seed: int) -> None:
    """Each watch is delivered, and each take-over costs one more attempt of it at most."""

    async def scene(s: Scene) -> None:
        dice = random.Random(seed)
        s.store.put(DONE, version=1)
        names = [f"w{n}" for n in range(20)]
        for name in names:
            s.receiver.says[name] = [BUSY] * dice.randrange(4)
        expected = {name: len(said) + 1 for name, said in s.receiver.says.items()}
        s.log.note_faults = ["away"] * dice.randrange(5)
        processes = [await s.process(), await s.process()]
        processes[1].shares.give()
        s.log.write(*(watch(name, url=f"https://{name}.example/") for name in names))
        takeovers = dice.randrange(1, 4)
        for number in range(takeovers):
            for _ in range(dice.randrange(20)):
                await asyncio.sleep(0.001)
            for index, process in enumerate(processes):
                process.shares.give(*([0] if index == (number + 1) % 2 else []))
        await s.told(len(names))
        await delivered(s, len(names))
        sent = [each.watch for each, _ in s.receiver.sent]
        for name in names:
            assert expected[name] <= sent.count(name) <= expected[name] + takeovers
        for process in processes:
            assert {process.detail(name).state for name in names} == {WatchState.DELIVERED}
        assert [each.type for each in s.log.events] == [EventType.TOKEN_FINAL] * len(names)

    run(scene)


def test_a_fault_of_ours_is_an_attempt_that_failed() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.broken = ["a"]
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        assert [each.attempts for each in s.log.deliveries] == [0, 1, 2]
        assert "a fault of status" in (s.log.deliveries[1].error or "")
        assert process.detail("a").state == WatchState.DELIVERED

    run(scene)


def test_a_long_event_is_found_where_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill_shared.contract.deliveries.EVENT_BYTES_MAX", 10)

    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.says["a"] = [BUSY]
        await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        assert {each.event for each in s.log.deliveries} == {""}
        assert {sent.event for sent, _ in s.receiver.sent} == {to_json(s.log.events[0])}

    run(scene)


def test_a_watch_that_is_deleted_before_its_delivery_is_heard_is_not_sent() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        first = s.log.deliveries[0]
        known = process.book.find("a")
        assert known is not None
        process.shares.give()
        await s.quiet()
        s.log.deliveries[:] = [first]
        s.log.write(closed(known))
        late = await s.process()
        await s.quiet()
        assert len(s.receiver.sent) == 1
        assert [each.error for each in s.log.deliveries] == [None, due_partition.UNWATCHED]
        assert [*late.deliveries.all_due()] == []

    run(scene)


def test_a_delivery_that_was_forgotten_is_not_sent_again_by_itself() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        await delivered(s, 1)
        await again(s, process, 2)
        process.shares.give()
        await s.quiet()
        s.log.deliveries.clear()
        s.clock.now += TRIED_MS
        await s.process()
        await s.quiet()
        assert (len(s.receiver.sent), s.log.deliveries) == (2, [])

    run(scene)


def test_what_is_asked_for_while_it_is_tried_needs_no_event_that_is_found_again() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        s.receiver.says["a"] = [BUSY] * 3
        s.receiver.hold.clear()
        process = await s.process()
        s.log.write(watch("a", url=HOOK))
        while not s.receiver.sent:
            await asyncio.sleep(0.005)
        s.log.events.clear()
        known = process.book.find("a")
        assert known is not None
        s.log.write(replace(known, redeliveries=1, redelivery_at=NOW))
        s.receiver.hold.set()
        await delivered(s, 1)
        assert process.detail("a").state == WatchState.DELIVERED
        assert s.receiver.sent[-1][0].turn == 1

    run(scene)


def test_what_is_delivered_leaves_nothing_behind() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(DONE, version=1)
        process = await s.process()
        s.log.write(*(watch(f"w{n}", url=f"https://h{n % 7}.example/") for n in range(200)))
        await delivered(s, 200)
        ((_, due),) = process.watchers._owned.values()
        assert (due._carried, due._over, due._notes) == ({}, {}, {})
        assert due._means.turns._hosts == {}
        assert [*process.deliveries.all_due()] == []

    run(scene)
