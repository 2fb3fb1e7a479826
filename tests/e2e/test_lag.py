"""Lag where everybody looks: in Kafka's consumer groups, and in what Prometheus scrapes."""

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.command_line import Run
from e2e.line import WAIT_S, Line
from e2e.scraping import lag_of_group, scrape
from e2e.waiting import eventually
from kafka_groups import group_names
from scraping import Scrape
from waybill import Client, Operation, PartitionOffsets
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract.routes import SERVICES
from waybill_shared.contract.version import VERSION
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.clock import SystemClock

SINKS = (("first", "middle"), ("second", "out"), ("second", "lake"))
AGE_S_MAX = 60.0  # of a commit that a token has just been told of, on a busy machine


@pytest.fixture
def line(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> Line:
    line = Line(client, stack, kafka, catalog)
    line.apply(partitions=2)
    return line


class Outside:
    """What somebody sees who knows nothing of Waybill but the names."""

    def __init__(self, stack: StackState, kafka: KafkaAdmin, line: Line) -> None:
        self._stack = stack
        self._kafka = kafka
        self.name = line.name
        self.prefix = f"{topic_prefix()}.{line.name}."

    def kafka(self) -> dict[str, int | None]:
        stages = {stage for stage, _ in SINKS}
        return {stage: lag_of_group(self._kafka, self.prefix + stage) for stage in stages}

    def prometheus(self) -> dict[str, float | None]:
        tracker = scrape(self._stack, "token_tracker")
        return {sink: self._lag(tracker, stage, sink) for stage, sink in SINKS}

    def groups(self) -> set[str]:
        return group_names(self._kafka, self.prefix)

    def _lag(self, tracker: Scrape, stage: str, sink: str) -> float | None:
        labels = {"pipeline": self.name, "stage": stage, "sink": sink}
        return tracker.value("waybill_lag_offsets", **labels)

    def shows(self, first: int, second: int) -> bool:
        by_stage = {"first": first, "second": second}
        by_sink = {sink: by_stage[stage] for stage, sink in SINKS}
        return self.kafka() == by_stage and self.prometheus() == by_sink


@pytest.fixture
def outside(stack: StackState, kafka: KafkaAdmin, line: Line) -> Outside:
    return Outside(stack, kafka, line)


def done(client: Client, operation: Operation) -> None:
    assert client.operation(operation.id, wait_s=WAIT_S).state == "done"


def test_lag_of_a_stopped_pipeline_is_seen_and_is_gone_when_it_has_caught_up(
    client: Client, line: Line, outside: Outside, stack: StackState, run: Run, kafka: KafkaAdmin
) -> None:
    eventually(lambda: outside.shows(first=0, second=0))  # before the first record, too
    client.wait(line.send(3), timeout_s=WAIT_S)
    eventually(lambda: outside.shows(first=0, second=0))

    done(client, client.stop(line.name))
    token = line.send(5)
    eventually(lambda: outside.shows(first=7, second=0))  # with the end of a transaction in both
    assert_stopped_at(client, line, run, kafka)
    assert scrape(stack, "stage_runner").value(
        "waybill_pipeline_phase", pipeline=line.name, phase="Stopped", fault=""
    )

    done(client, client.start(line.name))
    client.wait(token, timeout_s=WAIT_S)
    eventually(lambda: outside.shows(first=0, second=0))
    assert [stage.lag for stage in client.offsets(line.name).stages] == [0, 0]


def assert_stopped_at(client: Client, line: Line, run: Run, kafka: KafkaAdmin) -> None:
    """The offsets are those of Kafka, and the command prints them."""
    offsets = client.offsets(line.name)
    assert offsets.unknown == ()
    assert {stage.name: stage.lag for stage in offsets.stages} == {"first": 7, "second": 0}
    (first,) = offsets.stages[0].inputs
    ends = kafka.ends(first.topic, [0, 1])
    assert {each.partition: each.end for each in first.partitions} == ends
    for each in first.partitions:
        assert each.position is not None
        assert (each.base, each.end) == (0, each.position + (each.lag or 0))
    (second,) = offsets.stages[1].inputs
    assert all(each.position == each.end for each in second.partitions)
    assert all({sink.name for sink in each.sinks} == {"out", "lake"} for each in second.partitions)
    printed = [row.split() for row in run("offsets", line.name).stdout.splitlines()[1:]]
    assert printed == [
        [stage.name, f"{source.topic}[{each.partition}]", *numbers(each)]
        for stage in offsets.stages
        for source in stage.inputs
        for each in source.partitions
    ]


def numbers(each: PartitionOffsets) -> list[str]:
    return [str(number) for number in (each.base, each.position, each.end, each.lag)]


def test_what_an_operator_looks_at_after_a_token_is_complete(
    client: Client, line: Line, stack: StackState
) -> None:
    before = scrape(stack, "status").value("waybill_outcomes_total", outcome="complete") or 0

    client.wait(line.send(3), timeout_s=WAIT_S)
    eventually(lambda: len(committed_at(stack, line)) == len(SINKS))

    status, ingress = scrape(stack, "status"), scrape(stack, "ingress")
    assert (status.value("waybill_outcomes_total", outcome="complete") or 0) > before
    assert (status.value("waybill_long_poll_seconds_count", outcome="complete") or 0) > 0
    accepted = ingress.value("waybill_records_accepted_total", pipeline=line.name, input="orders")
    assert accepted == 3
    starts = {"pipeline": line.name, "reason": "started"}
    assert scrape(stack, "stage_runner").value("waybill_driver_starts_total", **starts) == 1
    for service in SERVICES:
        assert scrape(stack, service).value("waybill_build_info", version=VERSION) == 1
        ready = scrape(stack, service).labels("waybill_ready")
        assert all(scrape(stack, service).value("waybill_ready", **check) for check in ready)
    now_s = SystemClock().now_ms() / 1000
    assert all(0 <= now_s - at < AGE_S_MAX for at in committed_at(stack, line))
    tracker = scrape(stack, "token_tracker")
    for stage, sink in SINKS:
        labels = {"pipeline": line.name, "stage": stage, "sink": sink}
        assert tracker.value("waybill_batch_rows_total", **labels) == 3
        assert 0 < (tracker.value("waybill_batch_seconds_sum", **labels) or 0) < AGE_S_MAX


def committed_at(stack: StackState, line: Line) -> list[float]:
    """Of each sink that has a commit."""
    tracker = scrape(stack, "token_tracker")
    named = [{"pipeline": line.name, "stage": stage, "sink": sink} for stage, sink in SINKS]
    name = "waybill_last_commit_timestamp_seconds"
    found = [tracker.value(name, **labels) for labels in named]
    return [at for at in found if at is not None]


def shown_of(stack: StackState, line: Line) -> list[str]:
    """The services that show anything of this pipeline."""
    return [name for name in SERVICES if scrape(stack, name).names(pipeline=line.name)]


def test_a_deleted_pipeline_leaves_no_group_and_no_series(
    client: Client, line: Line, outside: Outside, stack: StackState
) -> None:
    client.wait(line.send(3), timeout_s=WAIT_S)
    eventually(lambda: len(outside.groups()) == 2)
    assert len(shown_of(stack, line)) == 3

    done(client, client.delete(line.name))

    eventually(lambda: not outside.groups())
    eventually(lambda: not shown_of(stack, line))
