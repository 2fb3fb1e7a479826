"""Two drivers of one pipeline, and a runner that is killed: every row is there, once."""

import signal
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e import waiting
from e2e.every_sink import START_TIMEOUT_S, WAIT_S, EverySink
from e2e.second_driver import all_end, home_of, leader_of, paused, runner_of, second_driver
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


def others_have(pipeline: EverySink, token: str, edge: str) -> bool:
    """All sinks load at once, and a driver that is paused while it writes to the catalog's file
    keeps that locked for everybody."""
    (stage,) = pipeline.client.outcome(token).stages
    states = {sink.name: sink.state for sink in stage.sinks}
    states.pop(edge.partition(".")[0])
    return set(states.values()) == {"committed"}


@pytest.mark.parametrize(
    "edge", ["kafka.before_commit", "iceberg.before_commit", "postgres.before_commit"]
)
def test_a_driver_that_was_paused_in_a_batch_finds_its_place_taken(
    stack: StackState, pipeline: EverySink, failpoints: Path, tmp_path: Path, edge: str
) -> None:
    pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.{edge}"
    point.touch()
    token = pipeline.send(5)
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    eventually(lambda: others_have(pipeline, token, edge), within_s=WAIT_S)
    first, group = drivers_of(stack, pipeline.uid), leader_of(stack, pipeline.uid)

    with second_driver(stack, pipeline.uid, tmp_path) as second:
        with paused(group):
            eventually(second.runs, within_s=START_TIMEOUT_S)
            pipeline.assert_once(token)
            pipeline.assert_once(pipeline.send(5))
            reached.unlink()
        assert all_end(first)
        pipeline.assert_once(pipeline.send(5))

    pipeline.assert_once(pipeline.send(5))  # by the one that the runner has started meanwhile


def test_a_driver_that_was_paused_between_batches_writes_nothing_that_another_wrote(
    stack: StackState, pipeline: EverySink, tmp_path: Path
) -> None:
    """The other one still runs when the runner starts its next, and loses its place to that."""
    pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    first, group = drivers_of(stack, pipeline.uid), leader_of(stack, pipeline.uid)

    with second_driver(stack, pipeline.uid, tmp_path) as second:
        with paused(group):
            token = pipeline.send(5)
            eventually(second.runs, within_s=START_TIMEOUT_S)
            pipeline.assert_once(token)
            pipeline.assert_once(pipeline.send(5))
        pipeline.assert_once(pipeline.send(5))
        assert all_end(first)
        eventually(
            lambda: waiting.group_of(stack, pipeline.uid) not in (None, group), within_s=WAIT_S
        )
        pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
        token = pipeline.send(5)
        eventually(second.ended, within_s=WAIT_S)
        pipeline.assert_once(token)


def test_a_driver_that_was_cut_off_writes_nothing_into_a_pipeline_that_was_deleted(
    client: Client,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    failpoints: Path,
    tmp_path: Path,
) -> None:
    """Its stage has never written into that table: it is the deletion that leaves a fence there."""
    pipeline = EverySink(client, stack, kafka, catalog)
    home = home_of(stack, pipeline.uid)
    pipeline.stop()
    with second_driver(stack, pipeline.uid, tmp_path, home) as second:
        eventually(second.runs, within_s=START_TIMEOUT_S)
        point = failpoints / f"{pipeline.uid}.iceberg.before_commit"
        point.touch()
        token = pipeline.send(5)
        reached = point.with_name(point.name + REACHED)
        eventually(reached.exists, within_s=WAIT_S)
        with paused(second.process.pid):
            deletion = client.operation(client.delete(pipeline.name).id, wait_s=WAIT_S)
            assert deletion.state == "done", deletion.errors
            assert client.wait(token, timeout_s=WAIT_S).kind == "lost"
            reached.unlink()
        eventually(second.ended, within_s=WAIT_S)

    assert catalog.load_table(pipeline.table).scan().to_arrow().num_rows == 0
    assert client.outcome(token).kind == "lost"


def test_the_driver_of_a_killed_runner_is_gone_before_the_next_one_starts(
    stack: StackState, pipeline: EverySink, failpoints: Path
) -> None:
    """All of it, also a JVM that was stopped and so cannot notice anything."""
    pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.iceberg.before_commit"
    point.touch()
    token = pipeline.send(5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    leader = psutil.Process(leader_of(stack, pipeline.uid))
    (java,) = [child for child in leader.children() if child.name() == "java"]
    java.send_signal(signal.SIGSTOP)

    runner_of(stack).kill()
    seen = watch_hand_over([leader, java], stack, pipeline)

    assert (0, 0) in seen
    assert all(old == 0 or new == 0 for old, new in seen)
    pipeline.assert_once(token)
    pipeline.assert_once(pipeline.send(5))
    for each in pipeline.client.pipelines():  # all others have lost their drivers too
        if each.desired == "running":
            pipeline.client.wait_pipeline(each.name, timeout_s=WAIT_S)


def watch_hand_over(
    old: list[psutil.Process], stack: StackState, pipeline: EverySink
) -> set[tuple[int, int]]:
    """How many processes of the old driver, and how many new leaders, were there together."""
    seen: set[tuple[int, int]] = set()

    def handed_over() -> bool:
        new = [p for p in waiting.leaders_of(stack, pipeline.uid) if p not in old]
        seen.add((sum(map(lives, old)), len(new)))
        return bool(new)

    eventually(handed_over, within_s=WAIT_S)
    return seen


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
