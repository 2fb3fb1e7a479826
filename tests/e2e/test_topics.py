"""Topics that are created anew, or that retention has emptied, under a pipeline: never a lie."""

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, order
from e2e.every_sink import WAIT_S, EverySink
from e2e.reading import committed_orders, rows_of
from e2e.topics import produce_orders, recreate, remove_records
from e2e.waiting import drivers_of, eventually
from waybill import Client, Position, ProblemError, WaybillError
from waybill.outcomes import Outcome
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED


@pytest.fixture
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


def assert_lost(outcome: Outcome, reason: str, count: int) -> None:
    assert outcome.kind == "lost"
    assert [lost.reason for lost in outcome.lost] == [reason]
    (lost,) = outcome.lost
    assert lost.start is not None
    assert lost.end is not None
    assert lost.end - lost.start == count


def test_a_topic_created_anew_and_grown_past_the_old_offset_is_not_read_on(
    pipeline: EverySink, client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    """Spark alone goes on at the old offset: of 80 new records it sees 30, in silence."""
    first = pipeline.send(50)
    client.wait(first, timeout_s=WAIT_S)
    pipeline.stop()
    old = pipeline.send(3)
    recreate(kafka, pipeline.topic)
    produce_orders(stack.kafka, pipeline.topic, range(1000, 1080))

    problem = pipeline.refused_start()

    assert "topic_recreated" in problem.message
    assert "--from earliest" in (problem.hint or "")
    assert_lost(client.wait(old, timeout_s=WAIT_S), "topic_recreated", 3)
    assert client.outcome(first).kind == "complete"
    with pytest.raises(ProblemError) as refused:
        pipeline.send(1)
    assert f"waybill restart {pipeline.name} --from earliest" in (refused.value.hint or "")
    pipeline.restart("earliest")
    pipeline.sent = [*range(50), *range(1000, 1080)]  # of the refused one nothing was written
    pipeline.assert_once(pipeline.send(2))
    assert_lost(client.wait(old, timeout_s=WAIT_S), "topic_recreated", 3)
    assert client.outcome(first).kind == "complete"


def test_a_restart_at_the_latest_record_of_a_new_topic_says_what_it_left_out(
    pipeline: EverySink, client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    client.wait(pipeline.send(5), timeout_s=WAIT_S)
    recreate(kafka, pipeline.topic)
    produce_orders(stack.kafka, pipeline.topic, range(1000, 1009))
    assert "topic_recreated" in pipeline.await_failed().message
    failed = client.offsets(pipeline.name)
    ends = [(each.topic, each.reason) for each in failed.unknown if each.what == "end"]
    assert ends == [(pipeline.topic, "topic_recreated")]
    assert (failed.stages[0].inputs[0].partitions[0].end, failed.stages[0].lag) == (None, None)

    pipeline.restart("latest")

    pipeline.assert_once(pipeline.send(2))
    (stage,) = client.offsets(pipeline.name).stages
    assert stage.inputs[0].partitions[0].base == 9, "what is below is `before_start`"
    topic_id = kafka.identify([pipeline.topic])[pipeline.topic].topic_id
    left_out = Position(topic=pipeline.topic, topic_id=topic_id, partition=0, offset=4)
    token = client.token_for(pipeline.name, positions=[left_out]).token
    assert_lost(client.wait(token, timeout_s=WAIT_S), "before_start", 1)


def test_a_topic_created_anew_between_the_check_and_the_read_gives_no_row(
    pipeline: EverySink, client: Client, stack: StackState, kafka: KafkaAdmin, failpoints: Path
) -> None:
    client.wait(pipeline.send(10), timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.both.before_read"
    reached = point.with_name(point.name + REACHED)
    point.touch()
    old = pipeline.send(3)
    eventually(reached.exists, within_s=WAIT_S)
    recreate(kafka, pipeline.topic)
    produce_orders(stack.kafka, pipeline.topic, range(1000, 1040))

    reached.unlink()

    assert "topic_recreated" in pipeline.await_failed().message
    assert committed_orders(stack, kafka, f"{pipeline.name}.out") == list(range(10))
    assert_lost(client.wait(old, timeout_s=WAIT_S), "topic_recreated", 3)
    pipeline.restart("earliest")
    pipeline.sent = [*range(10), *range(1000, 1040)]
    pipeline.assert_once(pipeline.send(2))


def test_records_that_retention_removed_unread_are_lost_and_the_next_start_goes_on(
    pipeline: EverySink, client: Client, kafka: KafkaAdmin
) -> None:
    """Each request is a transaction, whose end takes an offset."""
    client.wait(pipeline.send(4), timeout_s=WAIT_S)
    pipeline.stop()
    gone = pipeline.send(3)
    half = pipeline.send(4)
    kept = pipeline.send(2)
    remove_records(kafka, pipeline.topic, before=11)

    problem = pipeline.refused_start()

    assert "retention_passed" in problem.message
    assert f"{pipeline.topic}[0] 5 to 10" in problem.message
    assert_lost(client.wait(gone, timeout_s=WAIT_S), "retention_passed", 3)
    assert_lost(client.wait(half, timeout_s=WAIT_S), "retention_passed", 2)
    assert client.outcome(kept).kind == "in_progress"
    pipeline.start()
    pipeline.sent = [*range(4), *range(9, 13)]
    pipeline.assert_once(kept)
    assert client.outcome(gone).kind == "lost"


class Load:
    """Sends two orders at a time over HTTP until the block ends, whatever is answered."""

    def __init__(self, pipeline: EverySink) -> None:
        self.tokens: dict[str, list[int]] = {}
        self.refused: list[str] = []
        self._pipeline = pipeline
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._enough.is_set():
            before = len(self._pipeline.sent)
            try:
                token = self._pipeline.send(2)
            except WaybillError as error:
                self.refused.append(str(error))
                continue
            self.tokens[token] = self._pipeline.sent[before:]


def test_a_topic_created_anew_while_ingress_produces_gives_no_false_answer(
    pipeline: EverySink, client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    """Every token that was given ends: complete, and its rows are there, or lost."""
    with Load(pipeline) as load:
        eventually(lambda: len(load.tokens) >= 20, within_s=WAIT_S)
        recreate(kafka, pipeline.topic)
        assert "topic_recreated" in pipeline.await_failed().message
        eventually(lambda: bool(load.refused), within_s=WAIT_S)
        pipeline.restart("earliest")
        count = len(load.tokens)
        eventually(lambda: len(load.tokens) >= count + 20, within_s=WAIT_S)

    kinds = {token: client.wait(token, timeout_s=WAIT_S).kind for token in load.tokens}
    rows = Counter(committed_orders(stack, kafka, f"{pipeline.name}.out"))
    assert set(kinds.values()) <= {"complete", "lost"}
    assert list(kinds.values())[-20:] == ["complete"] * 20
    complete = [n for token, ns in load.tokens.items() if kinds[token] == "complete" for n in ns]
    assert all(rows[number] == 1 for number in complete)
    assert set(rows.values()) == {1}


def test_an_inner_topic_created_anew_loses_what_stood_in_it_and_nothing_else(
    apply_orders: Apply,
    client: Client,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    failpoints: Path,
) -> None:
    orders = apply_orders()
    uid = str(client.pipeline(orders.name).uid)
    first = client.send(orders.name, "orders", [order(1)]).token
    client.wait(first, timeout_s=WAIT_S)
    point = failpoints / f"{uid}.lake.before_commit"
    point.touch()
    inside = client.send(orders.name, "orders", [order(2), order(3)]).token
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    recreate(kafka, f"{orders.name}.enriched")
    for process in drivers_of(stack, uid):
        process.send_signal(signal.SIGKILL)

    lost = client.wait(inside, timeout_s=WAIT_S)

    assert lost.kind == "lost"
    assert {span.reason for span in lost.lost} == {"topic_recreated"}
    assert {span.topic for span in lost.lost} == {orders.topic}
    restarted = client.restart(orders.name, "earliest")
    assert client.operation(restarted.id, wait_s=WAIT_S).state == "done"
    token = client.send(orders.name, "orders", [order(4)]).token
    outcome = client.wait(token, timeout_s=WAIT_S)
    assert outcome.kind == "complete"
    rows = rows_of(catalog, orders.table, outcome.iceberg_snapshots["lake"]).to_pylist()
    assert sorted(row["order_id"] for row in rows) == [1, 4]
    assert client.outcome(first).kind == "complete"
    assert client.outcome(inside).kind == "lost"
