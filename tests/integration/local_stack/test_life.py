"""The beginning and the end of a stack: what is kept, what fails, and that nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest
import redis
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from integration.local_stack.place import Place, eventually, family, state_of
from waybill_local import stack
from waybill_local.broker import NAME as KAFKA
from waybill_local.processes import runs, wait_for_ends
from waybill_local.stack import StackError, StackState
from waybill_local.state import load, save

Foreground = subprocess.Popen[str]

GONE_S = 120.0
FOREGROUND = """
import sys
from pathlib import Path
from waybill_local import reports, stack
from waybill_local.services import Service
services = tuple(Service(name=n, module=f"standin_{n}", stop_timeout_s=30) for n in sys.argv[2:])
options = stack.Options(gateway_port=0, kafka_port=0, valkey_port=0, services=services)
try:
    stack.run(Path(sys.argv[1]), options, lambda report: print(reports.line(report), flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


def assert_gone(processes: list[psutil.Process]) -> None:
    assert wait_for_ends(processes, GONE_S) == []


def pid_of(state: StackState, name: str) -> int:
    return next(process.pid for process in state.processes if process.name == name)


def topic_id(state: StackState, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": state.kafka, "log_level": 0})
    answers = admin.describe_topics(TopicCollection([name]))
    return str(answers[name].result(10).topic_id)


def test_down_leaves_no_process_and_up_finds_everything_again(place: Place) -> None:
    first = place.up()
    topic = topic_id(first, "waybill.commits")
    keys = (first.folder / "keys.json").read_text()
    with redis.Redis.from_url(first.redis) as client:
        client.set("kept", "yes")
    processes = family(first)
    assert len(processes) == 5
    assert stack.down(place.folder, place.reports.append)
    assert_gone(processes)
    assert stack.read_state(place.folder) is None
    assert not stack.down(place.folder, place.reports.append)

    second = place.up()
    assert second.ports == first.ports
    assert topic_id(second, "waybill.commits") == topic
    assert (second.folder / "keys.json").read_text() == keys
    with redis.Redis.from_url(second.redis) as client:
        assert client.get("kept") == b"yes"
    assert_killed_supervisor_takes_everything(place, second)


def assert_killed_supervisor_takes_everything(place: Place, state: StackState) -> None:
    processes = family(state)
    os.kill(state.supervisor_pid, signal.SIGKILL)
    assert_gone(processes)
    assert stack.read_state(place.folder) is None
    assert not stack.down(place.folder, place.reports.append)


def test_killed_supervisor_leaves_what_up_can_start_again(place: Place) -> None:
    state = place.up()
    assert_killed_supervisor_takes_everything(place, state)
    assert place.up().ports == state.ports


def test_what_outlived_its_supervisor_is_ended_by_down(place: Place) -> None:
    state = place.up()
    os.kill(state.supervisor_pid, signal.SIGKILL)
    assert_gone([psutil.Process(state.supervisor_pid)])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as left:
        claim_process(state, left.pid)
        assert stack.down(place.folder, place.reports.append)
        assert_gone([psutil.Process(left.pid)] if psutil.pid_exists(left.pid) else [])


def claim_process(state: StackState, pid: int) -> None:
    """Write into the state file that `pid` is one of the stack's."""
    began = psutil.Process(pid).create_time()
    save(replace(state, processes=(replace(state.processes[0], pid=pid, began=began),)))


def test_service_that_ends_while_starting_is_named_with_its_log(place: Place) -> None:
    place.add_service("status", prepare='sys.exit("no such setting: colour")')
    before = set(psutil.pids())
    with pytest.raises(StackError) as raised:
        place.up()
    assert raised.value.what == "status ended while starting (exit code 1)"
    assert "no such setting: colour" in raised.value.why
    assert "logs/status.log" in raised.value.why
    assert "waybill up" in raised.value.fix
    assert stack.read_state(place.folder) is None
    left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert [process for process in left if runs(process)] == []


def test_end_of_kafka_is_the_end_of_the_stack(place: Place) -> None:
    state = place.up()
    processes = family(state)
    os.kill(pid_of(state, KAFKA), signal.SIGKILL)
    assert_gone(processes)
    assert "kafka ended (exit code -9)" in (state.folder / "logs" / "supervisor.log").read_text()
    ended = load(state.folder)
    assert ended is not None
    assert ended.failure.startswith("kafka ended (exit code -9)")


def test_child_of_a_service_in_a_session_of_its_own_is_ended_too(place: Place) -> None:
    place.add_service(
        "status",
        prepare='subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],'
        " start_new_session=True)",
    )
    processes = family(place.up())
    assert len(processes) == 7
    stack.down(place.folder, place.reports.append)
    assert_gone(processes)


@pytest.fixture
def foreground(place: Place) -> Iterator[Foreground]:
    """Start the stack of `place` in the foreground of a process of its own."""
    names = [service.name for service in place.services]
    command = [sys.executable, "-c", FOREGROUND, str(place.folder), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def read_until(process: Foreground, start: str) -> None:
    assert process.stdout is not None
    while not (line := process.stdout.readline()).startswith(start):
        assert line, "it ended too early"


def test_ctrl_c_stops_everything_and_says_so(place: Place, foreground: Foreground) -> None:
    read_until(foreground, "stack")
    processes = family(state_of(place))
    foreground.send_signal(signal.SIGINT)
    out = foreground.communicate(timeout=GONE_S)[0]
    assert foreground.returncode == 0
    assert [line.split()[0] for line in out.splitlines()][-1] == "stack"
    assert_gone(processes)


def test_second_ctrl_c_does_not_wait(place: Place, request: pytest.FixtureRequest) -> None:
    place.add_service("status", prepare="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    foreground = request.getfixturevalue("foreground")
    read_until(foreground, "stack")
    processes = family(state_of(place))
    foreground.send_signal(signal.SIGINT)
    read_until(foreground, "ingress")  # the others have ended; one ignores the request
    foreground.send_signal(signal.SIGINT)
    out = foreground.communicate(timeout=GONE_S)[0]
    assert "killed" in out
    assert_gone(processes)


def test_ctrl_c_while_starting_leaves_nothing(place: Place, foreground: Foreground) -> None:
    read_until(foreground, "java")
    eventually((place.folder / ".waybill" / "logs" / "kafka.log").exists)
    children = psutil.Process(foreground.pid).children(recursive=True)
    foreground.send_signal(signal.SIGINT)
    foreground.communicate(timeout=GONE_S)
    assert foreground.returncode == 130
    assert_gone(children)


def test_ctrl_c_while_a_stack_starts_in_the_background_leaves_nothing(place: Place) -> None:
    place.add_service("status", prepare="signal.pause()")  # it never becomes ready
    code = FOREGROUND.replace("stack.run(", "stack.up(").replace(
        "options, lambda report: print(reports.line(report), flush=True))",
        "lambda report: print(reports.line(report), flush=True), options=options)",
    )
    names = [service.name for service in place.services]
    command = [sys.executable, "-c", code, str(place.folder), *names]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        read_until(process, "java")
        supervisors = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=GONE_S)
    assert process.returncode == 130
    assert_gone(supervisors)


def test_tied_stack_ends_with_the_process_that_started_it(place: Place) -> None:
    code = FOREGROUND.replace("stack.run(", "stack.up(").replace(
        "lambda report: print(reports.line(report), flush=True))",
        "lambda r: print(reports.line(r), flush=True), options=options, tied=True); input()",
    )
    code = code.replace("options, lambda r", "lambda r")
    names = [service.name for service in place.services]
    command = [sys.executable, "-c", code, str(place.folder), *names]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as process:
        read_until(process, "stack")
        processes = family(state_of(place))
        process.kill()
        assert_gone(processes)
