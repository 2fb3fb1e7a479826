"""A stack while it runs: its table, its broker, its Valkey, its services."""

import json
import os
import signal
import stat
import urllib.request

import psutil
import pytest
import redis
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from integration.local_stack.place import Place, eventually, state_of
from waybill_local import stack
from waybill_local.stack import AlreadyRunning, ProcessState, StackPhase, StackState
from waybill_shared.contract.topics import topic_specs


@pytest.fixture
def admin(state: StackState) -> AdminClient:
    return AdminClient({"bootstrap.servers": state.kafka})


@pytest.fixture
def state(running: Place) -> StackState:
    return state_of(running)


def process_of(state: StackState, name: str) -> ProcessState:
    return next(process for process in state.processes if process.name == name)


def test_each_step_is_reported_with_its_address_and_time(running: Place) -> None:
    state = state_of(running)
    ready = {report.name: report for report in running.reports if report.kind == "ready"}
    assert {"java", "kafka", "valkey", "topics", "ingress", "gateway", "stack"} <= set(ready)
    assert ready["kafka"].address == state.kafka
    assert ready["kafka"].version == "4.3.1"
    assert ready["stack"].address == state.url
    assert all(ready[name].seconds is not None for name in ("kafka", "valkey", "stack"))


def test_table_names_every_process(running: Place) -> None:
    state = state_of(running)
    assert stack.read_state(running.folder) == state
    assert [process.name for process in state.processes] == [
        "kafka",
        "valkey",
        "ingress",
        "gateway",
    ]
    assert {process.state for process in state.processes} == {StackPhase.READY}
    assert all(psutil.pid_exists(process.pid) for process in state.processes)


def test_everything_listens_on_the_loopback_only(state: StackState) -> None:
    for process in state.processes:
        for connection in psutil.Process(process.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip in ("127.0.0.1", "::ffff:127.0.0.1"), process.name


def test_second_up_says_so_with_the_same_table(running: Place) -> None:
    state = state_of(running)
    with pytest.raises(AlreadyRunning) as raised:
        running.up()
    assert raised.value.state == state


def test_own_topics_are_made_and_others_never_by_accident(
    state: StackState, admin: AdminClient
) -> None:
    expected = {f"waybill.{spec.name}" for spec in topic_specs()}
    assert expected <= set(admin.list_topics(timeout=5).topics)
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": state.kafka, "message.timeout.ms": 2000})
    producer.produce("nobody.made.this", b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(10) == 0
    assert [error is None for error in errors] == [False]
    assert "nobody.made.this" not in admin.list_topics(timeout=5).topics


def test_transaction_goes_through_the_broker(state: StackState, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("in.and.out", 1)])["in.and.out"].result()
    producer = Producer({"bootstrap.servers": state.kafka, "transactional.id": "one"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("in.and.out", b"value")
    producer.commit_transaction(20)
    reader = Consumer(
        {"bootstrap.servers": state.kafka, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    reader.subscribe(["in.and.out"])
    message = reader.poll(20)
    reader.close()
    assert message is not None
    assert message.value() == b"value"


def test_valkey_writes_down_what_it_holds(state: StackState) -> None:
    with redis.Redis.from_url(state.redis) as client:
        assert client.config_get("append*")["appendonly"] == "yes"
        assert client.config_get("append*")["appendfsync"] == "everysec"


def test_valkey_starts_again_after_it_was_killed(running: Place) -> None:
    before = process_of(state_of(running), "valkey")
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)

    def back() -> bool:
        now = process_of(state_of(running), "valkey")
        return now.pid != before.pid and now.state is StackPhase.READY

    eventually(back)
    with redis.Redis.from_url(state_of(running).redis) as client:
        assert client.ping()


def test_secrets_are_for_the_owner_only(running: Place) -> None:
    state = state_of(running)
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((state.folder / "keys.json").stat().st_mode) == 0o600
    assert json.loads((state.folder / "keys.json").read_text())["active"] == 1


def test_crashed_service_is_started_again_and_it_is_said(running: Place) -> None:
    before = process_of(state_of(running), "ingress")
    with pytest.raises(OSError, match="closed connection"):
        urllib.request.urlopen(f"http://{before.address}/crash", timeout=5)

    def back() -> bool:
        now = process_of(state_of(running), "ingress")
        return now.pid != before.pid and now.state is StackPhase.READY

    eventually(back)
    log = (running.folder / ".waybill" / "logs" / "supervisor.log").read_text()
    assert "ended (exit code 3), starts again in 0.5 s" in log
    with urllib.request.urlopen(f"http://{before.address}/", timeout=5) as answer:
        assert answer.status == 200
