"""A kind of sinks that came as one folder and one row is read, planned and opened as the others."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from builders import make_fence
from memory_sink.kind import MEMORY
from memory_sink.loader import SHELVES
from unit.waybill_spark.opening import TOPICS, sinks_of
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.tools import sink_kinds
from waybill_shared.tools.manifest_schema import manifest_schema
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_stage_runner.core.pipelines.planning import define, topics_of

MANIFEST = """
version: 1
name: orders
inputs: [{name: orders, kafka: {topic: orders.in}, schema: "id BIGINT"}]
stages:
  - name: keep
    inputs: [orders]
    trigger: {processingTime: 1 second}
    sinks: [{name: kept, memory: {shelf: top}}]
"""
ROWS = [pa.record_batch({"id": [1, 2]})]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(KINDS, "memory", MEMORY)
    yield
    SHELVES.clear()


def test_it_is_read_with_its_errors_in_place() -> None:
    (stage,) = read_manifest(MANIFEST).model.stages
    assert (stage.sinks[0].kind, stage.sinks[0].settings.target) == ("memory", "top")
    with pytest.raises(UserError) as refused:
        read_manifest(MANIFEST.replace("shelf:", "shelv:"))
    (unknown,) = (p for p in refused.value.problems if "unknown" in p.message)
    assert (unknown.path, unknown.line) == ("stages.0.sinks.0.memory.shelv", 9)
    assert unknown.hint == "did you mean 'shelf'?"


def test_it_is_in_the_schema_the_page_and_the_warnings() -> None:
    assert '"shelf"' in manifest_schema()
    assert "| `memory` | `shelf` | rows in this process | exactly once | 2 seconds |" in (
        sink_kinds.render()
    )
    (warning,) = read_manifest(MANIFEST).model.warnings()
    assert warning == "stage keep: a batch every 1 second makes tests slow"


def test_it_is_planned_without_a_topic() -> None:
    manifest = read_manifest(MANIFEST).model
    (stage,) = define(manifest, TOPICS, None)
    (sink,) = stage.sinks
    assert (sink.kind, sink.target, sink.topic_id, sink.terminal) == ("memory", "top", None, True)
    assert [plan.topic for plan in topics_of(manifest)] == ["orders.in"]


def test_it_is_opened_and_shuts_out_who_comes_from_the_past() -> None:
    manifest = read_manifest(MANIFEST).model
    (definition,) = define(manifest, TOPICS, None)
    paused, newer = (sinks_of(manifest, definition)[0] for _ in range(2))
    for sink in (paused, newer):
        sink.claim()
    newer.write(ROWS, make_fence(sequence=0))
    with pytest.raises(SinkSuperseded):
        paused.write(ROWS, make_fence(sequence=0))
    assert SHELVES["top"].rows == ROWS
