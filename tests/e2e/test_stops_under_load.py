"""Each mode of a stop under load, with a sink of every kind.

Each row is there once, and no token says of a sink what is not so."""

from pathlib import Path
from typing import get_args

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.under_load import assert_true_now, await_done, load
from e2e.waiting import eventually
from waybill import Client
from waybill.models import StopMode
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

STOPS = 2
FORCED_S = 30.0  # less than the limit of a checkpoint
STOPPING = {"Stopping", "CheckpointStopping"}


class Loaded:
    """One pipeline for the whole file, and all of its tokens."""

    def __init__(self, pipeline: EverySink, stack: StackState) -> None:
        self.pipeline = pipeline
        self.stack = stack
        self.client = pipeline.client
        self.tokens: list[str] = []

    @property
    def name(self) -> str:
        return self.pipeline.name

    def await_newest(self) -> None:
        """What is sent now comes to its end."""
        before = len(self.tokens)
        eventually(lambda: len(self.tokens) > before, within_s=WAIT_S)
        assert self.client.wait(self.tokens[before], timeout_s=WAIT_S).kind == "complete"

    def assert_once(self) -> None:
        self.pipeline.assert_once(self.client.merge(self.tokens))


@pytest.fixture(scope="module")
def loaded(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> Loaded:
    return Loaded(EverySink(client, stack, kafka, catalog), stack)


@pytest.mark.parametrize("mode", get_args(StopMode))
def test_stops_under_load_leave_each_row_once_in_every_sink(loaded: Loaded, mode: StopMode) -> None:
    client, name, tokens = loaded.client, loaded.name, loaded.tokens
    with load(loaded.stack, loaded.pipeline, tokens):
        for _ in range(STOPS):
            loaded.await_newest()
            before = [*tokens]
            await_done(client, client.stop(name, mode))
            client.wait_pipeline(name, "Stopped", WAIT_S)
            assert_true_now(loaded.pipeline, tokens)
            if mode == "drain":
                assert client.outcome(client.merge(before)).kind == "complete"
            await_done(client, client.start(name))
    loaded.assert_once()


@pytest.mark.parametrize("sink", ["kafka", "iceberg", "postgres"])
def test_a_forced_stop_overtakes_one_that_waits_for_its_batch(
    loaded: Loaded, failpoints: Path, sink: str
) -> None:
    """The batch is at the commit of one of its sinks, and comes again."""
    client, name = loaded.client, loaded.name
    client.wait_pipeline(name, timeout_s=WAIT_S)
    point = failpoints / f"{loaded.pipeline.uid}.{sink}.before_commit"
    reached = point.with_name(point.name + REACHED)
    with load(loaded.stack, loaded.pipeline, loaded.tokens):
        point.touch()
        eventually(reached.exists, within_s=WAIT_S)
        gentle = client.stop(name, "checkpoint", wait_s=0)
        eventually(lambda: client.pipeline(name).phase in STOPPING, within_s=WAIT_S)
        forced = client.operation(client.stop(name, "force").id, wait_s=FORCED_S)
        assert (forced.state, client.pipeline(name).desired) == ("done", "stopped")
        overtaken = client.operation(gentle.id, wait_s=WAIT_S)
        assert (overtaken.state, overtaken.problem) == ("failed", "superseded")
        reached.unlink()
        client.wait_pipeline(name, "Stopped", WAIT_S)
        assert_true_now(loaded.pipeline, loaded.tokens)
        await_done(client, client.start(name))
    loaded.assert_once()
