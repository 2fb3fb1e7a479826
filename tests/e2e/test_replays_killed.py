"""A driver killed at every edge of a replay into sinks of every kind: each row is there, once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S, EverySink
from e2e.replays_at_rest import Replayer
from e2e.waiting import eventually
from waybill import Client, RecordLocation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

SINKS = ("kafka", "iceberg", "postgres")
EDGES = [
    pytest.param(sink, edge, id=f"{edge} of the {sink} sink")
    for sink in SINKS
    for edge in ("before_load", "after_commit", "after_event")
]
RECORDS = 3 * len(EDGES)


class Dead:
    """A pipeline of which a person has put all records into their dead-letter topic."""

    def __init__(self, pipeline: EverySink, replayer: Replayer) -> None:
        self.pipeline = pipeline
        client, name = pipeline.client, pipeline.name
        pipeline.stop()
        token = pipeline.send(RECORDS)
        asked = [
            client.put_dead_letter(
                name,
                RecordLocation(topic=pipeline.topic, partition=0, offset=offset),
                "for later",
                wait_s=0,
            )
            for offset in range(RECORDS)
        ]
        pipeline.start()
        for each in asked:
            done = client.operation(each.id, wait_s=START_TIMEOUT_S)
            assert done.state == "done", done.errors
        assert client.wait(token, timeout_s=WAIT_S).kind == "dead_lettered"
        self.replayer = replayer
        self.left = replayer.letters(pipeline.topic)
        assert len(self.left) == RECORDS


@pytest.fixture(scope="module")
def dead(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> Iterator[Dead]:
    pipeline = EverySink(client, stack, kafka, catalog)
    yield Dead(pipeline, Replayer(client, stack, kafka, pipeline.name))
    client.delete(pipeline.name)


@pytest.mark.parametrize(("sink", "edge"), EDGES)
def test_a_driver_killed_in_a_replay_writes_every_row_once(
    client: Client, dead: Dead, failpoints: Path, sink: str, edge: str
) -> None:
    pipeline = dead.pipeline
    client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    before = {name: sorted(found) for name, found in pipeline.found().items()}
    letters = [dead.left.pop() for _ in range(3)]
    point = failpoints / f"{pipeline.uid}.{sink}.{edge}"
    point.touch()
    token = dead.replayer.replay(letters, *SINKS)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    pipeline.kill_driver()
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
    new = sorted(offset_of(letter) for letter in letters)
    for name, found in pipeline.found().items():
        assert sorted(found) == sorted([*before[name], *new]), name


def offset_of(letter: object) -> int:
    """The orders have the numbers of their offsets."""
    headers = dict(letter.headers())  # type: ignore[attr-defined]
    return int(headers["__connect.errors.offset"])
