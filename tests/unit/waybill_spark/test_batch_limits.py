"""How large a batch may be, by the trigger, the sinks and the bounds of its stage."""

from types import SimpleNamespace
from typing import cast

import pytest

from waybill_shared.contract.manifest.reading import read_manifest
from waybill_spark.driver.limits import batch_limits
from waybill_spark.driver.sql.compile import CompiledStage

MANIFEST = """\
version: 1
name: orders
inputs:
  - {{name: orders, kafka: {{topic: orders.in}}, schema: "order_id BIGINT"}}
stages:
  - name: load
    inputs: [orders]
    {more}
    sinks: [{{name: out, {sink}}}]
"""
GATHERS = "kafka: {topic: orders.out}"
APPENDS = "postgres: {connection: warehouse, table: public.orders}"
REPLACES = "iceberg: {table: raw.orders, mode: overwrite}"
ONCE, NOW = "trigger: {once: true}", "trigger: {availableNow: true}"


@pytest.mark.parametrize(
    ("more", "sink", "whole", "distributes", "bytes_max"),
    [
        ("#", GATHERS, False, False, 100),
        ("#", APPENDS, False, True, 100),
        ("#", REPLACES, True, True, 100),
        ("maxBytesPerTrigger: 7", APPENDS, False, False, 7),
        (NOW, GATHERS, False, False, 100),
        (NOW, APPENDS, False, True, 100),
        (ONCE, GATHERS, True, True, 100),
        (ONCE, APPENDS, True, True, 100),
    ],
)
def test_a_batch_that_is_the_only_one_or_replaces_others_is_never_cut(
    more: str, sink: str, whole: bool, distributes: bool, bytes_max: int
) -> None:
    (stage,) = read_manifest(MANIFEST.format(more=more, sink=sink)).model.stages
    unused = {"distribute": lambda _: None, "plan_records": lambda _: None}
    compiled = cast(CompiledStage, SimpleNamespace(stage=stage, **unused))
    found = batch_limits(compiled, rows_max=10, bytes_max=100, can_work=lambda: True)
    assert (found.must_stay_whole, found.may_distribute()) == (whole, distributes)
    assert (found.rows_max, found.bytes_max) == (10, bytes_max)
