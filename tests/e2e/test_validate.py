"""A manifest is checked as `apply` does it, and nothing is made of it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import START_TIMEOUT_S, Pipeline, order, orders_manifest
from e2e.waiting import run_of
from waybill import AsyncClient, Client, NotReady
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_stage_runner.app.admission import VALIDATIONS_MAX

WAIT_S = 120.0
AT_ONCE = 50


@dataclass(frozen=True)
class Made:
    """What there is of pipelines."""

    topics: dict[str, TopicIdentity]
    tables: frozenset[tuple[str, ...]]
    pipelines: frozenset[tuple[str, int | None]]
    folders: frozenset[str]


@pytest.fixture(scope="module")
def running(client: Client, orders: Pipeline) -> Iterator[Pipeline]:
    """It takes records before the first test and after the last one."""
    arrive(client, orders)
    yield orders
    arrive(client, orders)


@pytest.fixture(autouse=True)
def nothing_is_made(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog, running: Pipeline
) -> Iterator[None]:
    """And the pipeline that runs goes on in the same run."""

    def made() -> Made:
        spaces = catalog.list_namespaces()
        state = stack.folder / "stage_runner"
        return Made(
            topics=kafka.identify(kafka.client.list_topics(timeout=WAIT_S).topics),
            tables=frozenset(t for space in spaces for t in catalog.list_tables(space)),
            pipelines=frozenset((each.name, each.generation) for each in client.pipelines()),
            folders=frozenset(each.name for each in state.iterdir()),
        )

    before, run_id = made(), run_of(client, stack, running.name)
    yield
    assert made() == before
    assert run_of(client, stack, running.name) == run_id
    assert client.pipeline(running.name).phase == "Running"


def test_a_good_manifest_has_no_errors_but_a_graph_with_columns(client: Client) -> None:
    text, _ = orders_manifest()
    found = client.check(text, timeout_s=START_TIMEOUT_S)

    assert found.good
    assert found.warnings
    enrich, load = found.stages
    assert (enrich.name, enrich.inputs, enrich.sinks) == (
        "enrich",
        ("orders",),
        ("enriched_topic",),
    )
    assert "`tax` decimal" in enrich.columns["enriched_topic"]
    assert (load.inputs, list(load.columns)) == (("enriched_topic",), ["lake"])


def test_errors_of_several_stages_come_together_with_their_places(client: Client) -> None:
    """Also of SQL that stands in a block; of the stage that reads a wrong one nothing is said."""
    text, pipeline = orders_manifest()
    wrong = (
        text.replace("FROM orders", "FROM ordrs")
        + f"""
  - name: count
    inputs: [orders]
    steps:
      - name: counted
        sql: |
          SELECT order_id,
                 amout
          FROM orders
    sinks: [{{name: counts, kafka: {{topic: {pipeline.name}.counts}}}}]
  - name: broken
    inputs: [orders]
    steps:
      - name: half
        sql: |
          SELECT order_id FROM orders WHERE order_id >
    sinks: [{{name: halves, kafka: {{topic: {pipeline.name}.halves}}}}]
"""
    )
    found = client.check(wrong, timeout_s=START_TIMEOUT_S)

    first, second, third = found.errors
    assert ("ordrs" in first.message, "amout" in second.message) == (True, True)
    assert [placed(wrong, each.line, each.column) for each in (first, second)] == ["ordrs", "amout"]
    assert "end of input" in third.message
    assert third.line == wrong[: wrong.index("sinks: [{name: halves")].count("\n") + 1
    assert first.hint
    assert second.hint
    assert {stage.name: bool(stage.columns) for stage in found.stages} == {
        "enrich": False,
        "load": False,
        "count": False,
        "broken": False,
    }


def test_a_wrong_shape_is_told_at_once(client: Client) -> None:
    text, _ = orders_manifest()
    (error,) = client.check(text.replace("    key:", "    keyy:", 1)).errors

    assert (error.line, error.column) == (10, 11)


def test_a_change_is_told_with_its_columns_and_its_effect(client: Client, orders: Pipeline) -> None:
    applied = client.pipeline(orders.name).manifest
    assert applied is not None
    changed = applied.replace("AS tax FROM", "AS tax, 1 AS one FROM").replace(
        "name: load", "name: load2"
    )
    assert client.check(applied, timeout_s=START_TIMEOUT_S).changes == ()
    found = client.check(changed, timeout_s=START_TIMEOUT_S)

    assert found.changes is not None
    told = {(each.kind, each.path, each.effect) for each in found.changes}
    assert told == {
        ("change_stage", "stages.enrich", ""),
        ("change_columns", "stages.enrich.sinks.enriched_topic", ""),
        ("add_stage", "stages.load2", "writes_again"),
        ("remove_stage", "stages.load", "loses"),
    }
    (columns,) = (each.message for each in found.changes if each.kind == "change_columns")
    assert columns.endswith("column one added (int)")


def test_a_change_that_apply_would_refuse_is_told_with_its_place(
    client: Client, orders: Pipeline
) -> None:
    applied = client.pipeline(orders.name).manifest
    assert applied is not None
    found = client.check(
        applied.replace(f"topic: {orders.topic}", f"topic: {orders.topic}2"),
        timeout_s=START_TIMEOUT_S,
    )

    (error,) = found.errors
    assert "plan_incompatible: stage enrich read" in error.message
    assert (placed(applied, error.line, error.column), error.path) == ("inputs:", "stages.0.inputs")
    assert found.changes is None


def test_many_at_once_are_all_answered_or_told_to_come_later(stack: StackState) -> None:
    texts = [orders_manifest()[0] for _ in range(AT_ONCE)]
    texts[0] = texts[0].replace("FROM orders", "FROM ordrs")

    async def check_all() -> list[bool | BaseException]:
        async with AsyncClient(stack.url) as client:
            asked = (client.check(text, timeout_s=START_TIMEOUT_S) for text in texts)
            found = await asyncio.gather(*asked, return_exceptions=True)
        return [each if isinstance(each, BaseException) else each.good for each in found]

    first, *others = asyncio.run(check_all())
    later = [each for each in others if isinstance(each, NotReady)]
    assert first is False
    assert all((each.status, bool(each.retry_after_s)) == (429, True) for each in later)
    assert others.count(True) + len(later) == AT_ONCE - 1
    assert others.count(True) >= VALIDATIONS_MAX - 1


def placed(text: str, line: int | None, column: int | None) -> str:
    """The word at that place."""
    assert line is not None
    assert column is not None
    return text.splitlines()[line - 1][column - 1 :].split()[0].strip('"},')


def arrive(client: Client, pipeline: Pipeline) -> None:
    token = client.send(pipeline.name, "orders", [order(1)]).token
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
