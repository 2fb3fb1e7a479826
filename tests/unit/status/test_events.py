"""What status remembers of a pipeline's life, and how it lets requests follow it."""

import asyncio
from dataclasses import replace

import pytest

from clocks import NOW
from unit.status.slots import KEY, life
from waybill_shared.contract.errors import Refusal
from waybill_status.app.pipelines import events as module
from waybill_status.app.pipelines.events import EVENTS_MAX, Events, PipelineEvent

BEAT = replace(life(), kind="heartbeat")


def told(events: Events) -> list[tuple[str, str, str | None]]:
    return [(each.id, each.kind, each.event.blocked_by) for each in events.of(KEY)]


def test_of_heartbeats_only_new_obstacles_are_events() -> None:
    events = Events(streams_max=1)
    events.take(life(at=NOW))
    for at, blocked_by in enumerate([None, "a", "a", None, None], start=NOW + 1):
        events.take(replace(BEAT, at=at, blocked_by=blocked_by))
    assert told(events) == [
        (f"{NOW}.0", "transition", None),
        (f"{NOW + 2}.0", "blocked", "a"),
        (f"{NOW + 4}.0", "blocked", None),
    ]


def test_ids_tell_events_of_one_moment_apart_and_are_the_same_after_a_restart() -> None:
    before, after = Events(streams_max=1), Events(streams_max=1)
    for events in (before, after):
        events.take(life("Starting"))
        events.take(life("Running"))
    assert [each.id for each in before.of(KEY)] == [f"{NOW}.0", f"{NOW}.1"]
    assert told(before) == told(after)


def test_only_the_newest_are_kept() -> None:
    events = Events(streams_max=1)
    for at in range(EVENTS_MAX + 3):
        events.take(life(at=at))
    assert events.of(KEY)[0].event.at == 3


def test_a_stream_goes_on_with_what_happens_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> list[PipelineEvent | None]:
        events = Events(streams_max=1)
        events.take(life("Starting"))
        stream = events.follow(KEY, after="")
        seen = [await anext(stream)]
        monkeypatch.setattr(module, "SILENCE_S", 0.0)
        seen.append(await anext(stream))
        events.take(life("Running"))
        seen.append(await anext(stream))
        with pytest.raises(Refusal, match="streams of events are open"):
            events.follow(KEY, after="")
        events.close()
        return [*seen, *[each async for each in stream]]

    first, silence, second, *more = asyncio.run(scene())
    assert first is not None
    assert second is not None
    assert (first.event.phase, silence, second.event.phase) == ("Starting", None, "Running")
    assert more == []


def test_pipelines_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIPELINES_MAX", 1)
    events = Events(streams_max=1)
    events.take(life())
    events.take(replace(life(), pipeline_uid="uid-2"))
    assert events.of(KEY) == []
