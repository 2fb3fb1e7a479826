"""Events go to webhooks until these take them, whatever they say and whoever takes over."""

import asyncio
import random
from dataclasses import replace

import pytest

from clocks import NOW
from unit.status.coroutines import inside
from unit.status.delivering import BUSY, HOOK, SILENT, delivered, done
from unit.status.watching import Process, Scene, watch
from waybill_shared.contract.codec import to_json
from waybill_shared.contract.watches import as_closed
from waybill_shared.contract.words import DeliveryState, EventType, WatchState
from waybill_status.app.watches import deliveries
from waybill_status.core.watches.deliveries import TRIED_MS, Answered

pytestmark = pytest.mark.usefixtures("quick_deliveries")


@inside(done)
async def test_what_is_told_is_delivered_once_as_it_was_told(s: Scene) -> None:
    process = await s.process()
    s.log.write(watch("a", url=HOOK), watch("none"))
    await s.reports(2)
    await delivered(s, 1)
    ((sent, now_s),) = s.receiver.sent
    (event,) = [each for each in s.log.events if each.subject == "a"]
    assert [each.event == sent.event for each in s.log.deliveries] == [True, False]
    assert (sent.event, sent.event_id, now_s) == (to_json(event), "a.final", NOW // 1000)
    assert process.detail("a").state == WatchState.DELIVERED
    assert process.detail("none").state == WatchState.REPORTED
    shown = process.detail("a").webhook
    assert shown is not None
    assert (shown.attempts, shown.url) == (1, "https://hooks.example/a")


@inside(done)
async def test_each_attempt_is_noted_before_the_next_also_while_kafka_is_away(s: Scene) -> None:
    s.receiver.says["a"] = [SILENT, BUSY, SILENT]
    s.log.note_faults = ["away"] * 7
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    assert [sent.attempts for sent, _ in s.receiver.sent] == [0, 1, 2, 3]
    assert [each.attempts for each in s.log.deliveries] == [0, 1, 2, 3, 4]
    assert process.detail("a").state == WatchState.DELIVERED


@inside(done)
async def test_one_that_is_given_up_is_told_as_an_event(s: Scene) -> None:
    s.receiver.says["a"] = [BUSY, Answered(status=410, error="it answered 410")]
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    final, failed = await s.reports(2)
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


async def again(s: Scene, process: Process, count: int) -> None:
    """As ingress does it."""
    known = process.watch("a")
    s.log.write(replace(known, redeliveries=known.redeliveries + 1, redelivery_at=NOW))
    await delivered(s, count)


@inside(done)
async def test_what_was_delivered_or_given_up_is_sent_again_when_it_is_asked_for(s: Scene) -> None:
    s.receiver.says["a"] = [Answered(status=410, error="no")]
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    await again(s, process, 2)
    assert process.detail("a").state == WatchState.DELIVERED
    await again(s, process, 3)
    first, second, third = [sent for sent, _ in s.receiver.sent]
    assert first.event == second.event == third.event
    assert [each.redelivery for each in (first, second, third)] == [0, 1, 2]


@inside(done)
async def test_it_is_shown_as_due_from_when_it_is_asked_for(s: Scene) -> None:
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    process.shares.give()
    await s.quiet()
    s.log.write(replace(process.watch("a"), redeliveries=1, redelivery_at=NOW))
    shown = process.detail("a")
    assert shown.webhook is not None
    assert (shown.state, shown.webhook.state, shown.webhook.attempts) == (
        WatchState.REPORTED,
        DeliveryState.DUE,
        0,
    )
    process.shares.give(0)
    await delivered(s, 2)
    assert process.detail("a").state == WatchState.DELIVERED


@inside(done)
async def test_an_event_that_is_not_kept_any_more_is_said_to_be_so(s: Scene) -> None:
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    s.log.events.clear()
    await again(s, process, 2)
    shown = process.detail("a").webhook
    assert shown is not None
    assert (shown.state, shown.last_error) == (DeliveryState.FAILED, deliveries.FORGOTTEN)


@inside(done)
async def test_a_watch_that_is_deleted_is_tried_no_more(s: Scene) -> None:
    s.receiver.hold.clear()
    process = await s.process()
    s.log.write(watch("a", url=HOOK), watch("b", url=HOOK))
    await s.reports(2)
    await s.receiver.attempts(1)
    first = s.receiver.sent[0][0].watch
    s.log.write(as_closed(process.watch(first)))
    await delivered(s, 1)
    s.receiver.hold.set()
    await delivered(s, 2)
    ended = {each.watch: each for each in s.log.deliveries if not each.due}
    assert ended[first].error == deliveries.UNWATCHED
    assert len(s.log.events) == 2, "whoever deletes it knows"
    assert len(s.receiver.sent) == 2


@inside(done)
async def test_a_status_with_a_clock_a_day_ahead_gives_nothing_up(s: Scene) -> None:
    s.receiver.says["a"] = [BUSY, SILENT, BUSY]
    s.receiver.hold.clear()
    behind = await s.process()
    s.log.write(watch("a", url=HOOK))
    await s.receiver.attempts(1)
    behind.shares.give()
    await s.quiet()
    s.clock.now += 2 * TRIED_MS
    s.receiver.hold.set()
    ahead = await s.process()
    await delivered(s, 1)
    assert ahead.detail("a").state == WatchState.DELIVERED
    assert len(s.receiver.sent) == 5


@pytest.mark.parametrize("seed", range(20))
@inside(done)
async def test_whoever_takes_over_repeats_one_attempt_at_most(s: Scene, seed: int) -> None:
    """Each watch is delivered, and each take-over costs one more attempt of it at most."""
    dice = random.Random(seed)
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
    await s.reports(len(names))
    await delivered(s, len(names))
    sent = [each.watch for each, _ in s.receiver.sent]
    for name in names:
        assert expected[name] <= sent.count(name) <= expected[name] + takeovers
    for process in processes:
        assert {process.detail(name).state for name in names} == {WatchState.DELIVERED}
    assert [each.type for each in s.log.events] == [EventType.TOKEN_FINAL] * len(names)


@inside(done)
async def test_a_fault_of_ours_is_an_attempt_that_failed(s: Scene) -> None:
    s.receiver.broken = ["a"]
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    assert [each.attempts for each in s.log.deliveries] == [0, 1, 2]
    assert "a fault of status" in (s.log.deliveries[1].error or "")
    assert process.detail("a").state == WatchState.DELIVERED


@inside(done)
async def test_a_long_event_is_found_where_it_was_told(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_shared.contract.deliveries.EVENT_BYTES_MAX", 10)
    s.receiver.says["a"] = [BUSY]
    await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    assert {each.event for each in s.log.deliveries} == {""}
    assert {sent.event for sent, _ in s.receiver.sent} == {to_json(s.log.events[0])}


@inside(done)
async def test_a_watch_that_is_deleted_before_its_delivery_is_heard_is_not_sent(s: Scene) -> None:
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await delivered(s, 1)
    first = s.log.deliveries[0]
    known = process.watch("a")
    process.shares.give()
    await s.quiet()
    s.log.deliveries[:] = [first]
    s.log.write(as_closed(known))
    late = await s.process()
    await s.quiet()
    assert len(s.receiver.sent) == 1
    assert [each.error for each in s.log.deliveries] == [None, deliveries.UNWATCHED]
    assert [*late.deliveries.all_due()] == []


@inside(done)
async def test_a_delivery_that_was_forgotten_is_not_sent_again_by_itself(s: Scene) -> None:
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


@inside(done)
async def test_what_is_asked_for_while_it_is_tried_needs_no_event_that_is_found_again(
    s: Scene,
) -> None:
    s.receiver.says["a"] = [BUSY] * 3
    s.receiver.hold.clear()
    process = await s.process()
    s.log.write(watch("a", url=HOOK))
    await s.receiver.attempts(1)
    s.log.events.clear()
    s.log.write(replace(process.watch("a"), redeliveries=1, redelivery_at=NOW))
    s.receiver.hold.set()
    await delivered(s, 1)
    assert process.detail("a").state == WatchState.DELIVERED
    assert s.receiver.sent[-1][0].redelivery == 1


@inside(done)
async def test_what_is_delivered_leaves_nothing_behind(s: Scene) -> None:
    process = await s.process()
    s.log.write(*(watch(f"w{n}", url=f"https://h{n % 7}.example/") for n in range(200)))
    await delivered(s, 200)
    ((_, due),) = process.watchers._owned.values()
    assert (due._carried, due._over, due._notes) == ({}, {}, {})
    assert due._means.permits._hosts == {}
    assert [*process.deliveries.all_due()] == []
