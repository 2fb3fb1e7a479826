"""Redis loses what it had, or has it from another time: nobody is told anything but what was true
before, and what can be told is told again."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.redis.servers import Valkey, paused
from integration.redis.world import Answer, World, asked
from integration.waiting import eventually
from waybill_shared.contract.slots import NON_FINAL_AGE_MS_MAX

FLUSHES = 4
AGE_S = NON_FINAL_AGE_MS_MAX / 1000
LATE_S = 10.0  # of a machine that is busy; how old an answer may be is held by the judge's tests


@pytest.fixture
def replica(valkey: Valkey, tmp_path: Path) -> Iterator[Valkey]:
    with Valkey(tmp_path) as server:
        yield server


def reason(answer: Answer) -> object:
    """Of an outcome that is unknown; a busy machine may say `redis_away` at any moment."""
    return answer.body.get("reason")


def test_flushed_again_and_again_while_tokens_are_asked(world: World, valkey: Valkey) -> None:
    pipeline = world.pipeline()
    done, _ = pipeline.complete_token()
    arriving = [pipeline.token(n, n + 1) for n in range(1, 1 + FLUSHES)]
    never = pipeline.token(1_000, 1_001)

    with asked(world, done, never, *arriving) as asker, valkey.client() as client:
        for token in arriving:
            asker.hears(done, "complete")
            client.flushall()
            pipeline.process()
            asker.hears(token, "complete")
            asker.hears(done, "complete")
        with paused(world.tracker.pid):  # else it may be written again before anybody asks
            client.flushall()
            asker.hears(done, "unknown")
        asker.hears(done, "complete")

    assert asker.outcomes(never) <= {"in_progress", "unknown"}


def test_an_old_dump_says_nothing_until_it_is_written_again(
    world: World, valkey: Valkey, tmp_path: Path
) -> None:
    """The dump knows the second token only as one that is still in progress."""
    pipeline = world.pipeline()
    first, _ = pipeline.complete_token()
    second = pipeline.token(1, 2)
    world.await_outcome(second, "in_progress")
    valkey.copy_to(tmp_path / "dump")
    pipeline.process()
    world.await_outcome(second, "complete")

    with asked(world, first, second) as asker:
        asker.hears(second, "complete")
        with paused(world.tracker.pid):
            valkey.kill()
            valkey.put_back(tmp_path / "dump")
            valkey.start()
            eventually(lambda: reason(world.ask(second)) == "slot_missing")
            assert reason(world.ask(first)) == "slot_missing"
        asker.hears(first, "complete")
        asker.hears(second, "complete")


def test_a_replica_that_lags_is_promoted(world: World, valkey: Valkey, replica: Valkey) -> None:
    pipeline = world.pipeline()
    first, _ = pipeline.complete_token()
    second = pipeline.token(1, 2)
    follow(replica, valkey)
    with replica.client() as client:
        client.replicaof("127.0.0.1", 1)  # cut off from here on
    pipeline.process()
    world.await_outcome(second, "complete")

    with asked(world, first, second) as asker:
        asker.hears(second, "complete")
        with paused(world.tracker.pid):
            world.point_to(replica.port)
            eventually(lambda: reason(world.ask(second)) == "slot_missing")
            with replica.client() as client:
                client.replicaof("NO", "ONE")
            assert reason(world.ask(first)) == "slot_missing"
            assert reason(world.ask(second)) == "slot_missing"
        asker.hears(first, "complete")
        asker.hears(second, "complete")
        world.point_to(valkey.port)  # and back to the one that missed what came since
        asker.hears(first, "complete")
        asker.hears(second, "complete")


def test_a_primary_that_the_tracker_has_left_says_nothing_but_what_is_final(
    world: World, valkey: Valkey, replica: Valkey
) -> None:
    """Status still reaches the old one, the tracker writes to the new one."""
    pipeline = world.pipeline()
    first, _ = pipeline.complete_token()
    second = pipeline.token(1, 2)

    with asked(world, first, second) as asker:
        asker.hears(second, "in_progress")
        world.tracker_way.point_to(replica.port)
        pipeline.process()
        asker.hears(second, "unknown")
        assert world.ask(first).outcome == "complete"
        assert reason(world.ask(second)) == "tracker_silent"
        world.status_way.point_to(replica.port)
        asker.hears(second, "complete")

    world.point_to(valkey.port)


def test_back_to_a_primary_that_missed_what_came_meanwhile(
    world: World, valkey: Valkey, replica: Valkey
) -> None:
    """It is the same process as before, so its slot is its own: only it is of another moment.

    Nobody fails over and back within the age of an answer that is not final.
    """
    pipeline = world.pipeline()
    first, _ = pipeline.complete_token()
    second = pipeline.token(1, 2)
    world.await_outcome(second, "in_progress")

    with asked(world, first, second) as asker:
        world.point_to(replica.port)
        asker.hears(first, "complete")
        pipeline.process()
        asker.hears(second, "complete")
        left_at = time.monotonic()
        eventually(lambda: time.monotonic() - left_at > AGE_S)
        world.point_to(valkey.port)
        asker.hears(second, "complete")


def test_a_paused_tracker_leaves_what_is_final_and_takes_back_the_rest(world: World) -> None:
    pipeline = world.pipeline()
    done, _ = pipeline.complete_token()
    waiting = pipeline.token(1, 2)

    with asked(world, done, waiting) as asker:
        asker.hears(waiting, "in_progress")
        with paused(world.tracker.pid):
            pipeline.process()
            eventually(
                lambda: reason(world.ask(waiting)) == "tracker_silent", within_s=AGE_S + LATE_S
            )
            assert world.ask(done).outcome == "complete"
        asker.hears(waiting, "complete")

    assert "tracker_silent" not in {reason(answer) for answer in asker.heard[done]}


def follow(replica: Valkey, primary: Valkey) -> None:
    with replica.client() as client:
        client.replicaof("127.0.0.1", primary.port)
        eventually(lambda: client.info("replication")["master_link_status"] == "up")
    with primary.client() as client:
        client.set("followed", "1")
        assert client.wait(1, 10_000) == 1
