"""Which fence a sink has: it tells environments, pipelines, stages and lives of a name apart."""

from dataclasses import replace

import pytest

from unit.waybill_spark.opening import TOPICS, sinks_of
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_spark.driver import sinks
from waybill_spark.driver.definitions import checkpoint_path, stage_inputs
from waybill_spark.sinks.contract import Opening
from waybill_spark.tracking.sink import SinkLife
from waybill_stage_runner.core.pipelines.planning import define

MANIFEST = read_manifest(
    """
version: 1
name: orders
inputs: [{name: orders, kafka: {topic: orders.in}, schema: "id BIGINT"}]
stages:
  - name: load
    inputs: [orders]
    sinks: [{name: lake, iceberg: {table: raw.orders}}]
"""
).model


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[SinkLife]:
    found: list[SinkLife] = []

    class Lives:
        def open(self, opening: Opening) -> None:
            found.append(opening.life)

    monkeypatch.setattr(sinks, "loader_of", lambda kind: Lives())
    return found


def fence_key(lives: list[SinkLife], stage: StageDefinition, **of: str) -> str:
    """`of`: another prefix or cluster."""
    sinks_of(MANIFEST, stage, **of)
    return lives[-1].fence_key


def test_environments_that_share_a_table_have_fences_of_their_own(lives: list[SinkLife]) -> None:
    """They have one uid for pipelines of one name: it is made of the name."""
    (stage,) = define(MANIFEST, TOPICS, None)
    keys = {
        fence_key(lives, stage),
        fence_key(lives, stage, prefix="staging"),
        fence_key(lives, stage, cluster="there"),
    }
    assert len(keys) == 3


def test_a_sink_that_returns_has_a_fence_of_its_own(lives: list[SinkLife]) -> None:
    (stage,) = define(MANIFEST, TOPICS, None)
    again = replace(stage, sinks=(replace(stage.sinks[0], since=3),))
    assert fence_key(lives, stage) != fence_key(lives, again)


def test_a_sink_that_is_called_otherwise_keeps_its_fence_and_its_stage_its_folder(
    lives: list[SinkLife],
) -> None:
    (stage,) = define(MANIFEST, TOPICS, None)
    known = fence_key(lives, stage)
    assert lives[-1].key == ""
    was = replace(stage, name="fill", was=("load",))
    renamed = replace(was, sinks=(replace(stage.sinks[0], was=("pond",)),))
    before = replace(stage, sinks=(replace(stage.sinks[0], name="pond"),))
    (load,) = MANIFEST.stages
    manifest = MANIFEST.model_copy(update={"stages": (load.model_copy(update={"name": "fill"}),)})
    sinks_of(manifest, renamed)
    assert lives[-1].fence_key == known.replace("/lake@", "/pond@")
    assert (lives[-1].name, lives[-1].key) == ("lake", "load/pond@1")
    inputs = stage_inputs(stage)
    assert checkpoint_path(renamed, inputs) == checkpoint_path(before, inputs)
