"""A checkpoint that lost files, was wiped, or comes from another moment: the sinks decide."""

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.waiting import eventually
from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    pipeline = EverySink(client, stack, kafka, catalog)
    pipeline.client.wait(pipeline.send(3), timeout_s=WAIT_S)
    return pipeline


def newest(log: Path) -> Path:
    return max((f for f in log.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))


def forget_last_batch(checkpoint: Path) -> None:
    """What a crash of the machine does: Spark never syncs its files."""
    for log in ("offsets", "commits"):
        last = newest(checkpoint / log)
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def damage_last_plan(checkpoint: Path) -> None:
    newest(checkpoint / "offsets").write_text("")
    newest(checkpoint / "commits").unlink()


def commit_as_another_driver(checkpoint: Path) -> None:
    """One that was paused before its commit, and goes on when another one has its place."""
    last = newest(checkpoint / "commits")
    shutil.copy(last, last.with_name(str(int(last.name) + 3)))


@pytest.mark.parametrize(
    "harm", [forget_last_batch, damage_last_plan, commit_as_another_driver, shutil.rmtree]
)
def test_a_damaged_checkpoint_loses_and_doubles_nothing(pipeline: EverySink, harm: object) -> None:
    assert callable(harm)
    pipeline.client.wait(pipeline.send(2), timeout_s=WAIT_S)
    pipeline.stop()
    harm(pipeline.checkpoint())
    token = pipeline.send(4)
    pipeline.start()
    pipeline.assert_once(token)


def test_a_checkpoint_of_an_earlier_moment_writes_nothing_twice(
    pipeline: EverySink, tmp_path: Path
) -> None:
    pipeline.stop()
    earlier, checkpoint = tmp_path / "earlier", pipeline.checkpoint()
    shutil.copytree(checkpoint, earlier)
    pipeline.start()
    for _ in range(2):
        pipeline.client.wait(pipeline.send(2), timeout_s=WAIT_S)
    pipeline.stop()
    shutil.rmtree(checkpoint)
    shutil.copytree(earlier, checkpoint)
    asides = len(pipeline.asides())

    token = pipeline.send(3)
    pipeline.start()

    pipeline.assert_once(token)
    assert len(pipeline.asides()) == asides + 1


def test_sinks_that_a_crash_left_apart_are_levelled_without_a_checkpoint(
    pipeline: EverySink, failpoints: Path
) -> None:
    point = failpoints / f"{pipeline.uid}.iceberg.before_commit"
    point.touch()
    token = pipeline.send(5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    shutil.rmtree(pipeline.checkpoint())
    pipeline.kill_driver()
    pipeline.assert_once(token)


def test_a_sink_whose_fence_is_gone_stops_the_stage_and_the_hint_works(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    pipeline = EverySink(client, stack, kafka, catalog)
    for _ in range(2):  # after its first batch alone the table might just not have been written yet
        pipeline.client.wait(pipeline.send(3), timeout_s=WAIT_S)
    pipeline.stop()
    catalog.drop_table(pipeline.table)

    failed = client.operation(client.start(pipeline.name).id, wait_s=WAIT_S)

    assert failed.state == "failed"
    problem = failed.errors[0]
    assert "checkpoint_diverged" in problem.message
    assert "sink iceberg has no fence" in problem.message
    assert "delete the pipeline and apply it again" in (problem.hint or "")

    done = client.operation(client.delete(pipeline.name).id, wait_s=WAIT_S)
    assert done.state == "done"
    kafka.client.delete_topics([f"{pipeline.name}.out"])[f"{pipeline.name}.out"].result()
    Database.of(stack).ask(f"TRUNCATE {pipeline.postgres_table}")
    pipeline.apply()
    pipeline.assert_once(pipeline.send(2))
