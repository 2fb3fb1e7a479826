"""Receivers that hang hold up no others, and only so many events are sent at once."""

import asyncio
from dataclasses import replace

import pytest

from unit.status.coroutines import inside
from unit.status.delivering import HOOK, SILENT, delivered, done
from unit.status.watching import Scene, watch
from waybill_status.app.watches import host_permits

pytestmark = pytest.mark.usefixtures("quick_deliveries")


@inside(done)
async def test_a_host_that_hangs_holds_up_no_other(s: Scene) -> None:
    s.receiver.hold.clear()
    await s.process()
    s.log.write(*(watch(f"slow{n}", url="https://slow.example/") for n in range(100)))
    s.log.write(*(watch(f"w{n}", url=f"https://h{n}.example/") for n in range(30)))
    await s.reports(130)
    await s.receiver.attempts(31)
    await s.quiet()
    hosts = [sent.webhook.url for sent, _ in s.receiver.sent]
    assert hosts.count("https://slow.example/") == 1
    assert len(hosts) == 31
    s.receiver.hold.set()
    await delivered(s, 130)


@inside(done)
async def test_receivers_of_one_key_that_hang_hold_up_no_other_key_at_their_host(s: Scene) -> None:
    s.receiver.hold.clear()
    await s.process()
    s.log.write(*(watch(f"a{n}", url=HOOK) for n in range(30)))
    s.log.write(*(replace(watch(f"b{n}", url=HOOK), actor="other") for n in range(30)))
    await s.reports(60)
    await s.receiver.attempts(2)
    await s.quiet()
    assert sorted(sent.watch[0] for sent, _ in s.receiver.sent) == ["a", "b"]
    s.receiver.hold.set()
    await delivered(s, 60)


@inside(done)
async def test_no_more_than_so_many_are_sent_at_once(s: Scene) -> None:
    s.receiver.hold.clear()
    await s.process()
    s.log.write(*(watch(f"w{n}", url=f"https://h{n}.example/") for n in range(80)))
    await s.reports(80)
    await s.receiver.attempts(host_permits.AT_ONCE)
    await s.quiet()
    assert len(s.receiver.sent) == host_permits.AT_ONCE
    s.receiver.hold.set()
    await delivered(s, 80)


@inside(done)
async def test_those_who_did_not_answer_have_few_turns_at_once(s: Scene) -> None:
    names = [f"dead{n}" for n in range(30)]
    for name in names:
        s.receiver.says[name] = [SILENT, SILENT]
    await s.process()
    s.log.write(*(watch(name, url=f"https://{name}.example/") for name in names))
    while len(s.receiver.sent) < len(names):
        await asyncio.sleep(0)
    s.receiver.hold.clear()
    await s.quiet()
    assert len(s.receiver.sent) <= len(names) + host_permits.SILENT_AT_ONCE
    s.log.write(watch("well", url="https://well.example/"))
    while s.receiver.sent[-1][0].watch != "well":
        await asyncio.sleep(0.005)
    s.receiver.hold.set()
    await delivered(s, 31)
