"""Child processes: their logs, their deadlines, and that stopping one ends all it started."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from waybill_local.errors import StackError
from waybill_local.processes import (
    Child,
    ChildSpec,
    Interrupted,
    check_ready,
    start,
    stop,
    wait_for_ends,
    wait_ready,
)

Check = Callable[[], str | None]

IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
SPEAKS = "print('up', flush=True);"
WAITS = "import time; time.sleep(600)"


def make_spec(code: str, *, wrong: Check = lambda: None, ready_timeout_s: float = 10) -> ChildSpec:
    return ChildSpec(
        name="tool",
        version="1",
        address="127.0.0.1:1",
        command=(sys.executable, "-c", code),
        environment=dict(os.environ),
        wrong=wrong,
        ready_timeout_s=ready_timeout_s,
        stop_timeout_s=0.3,
        restarts=True,
        fix="try again",
    )


def started(code: str, folder: Path, *, before: str = "") -> Child:
    """A child that has said so."""
    log = folder / "tool.log"

    def silent() -> str | None:
        return None if log.exists() and "up" in log.read_text() else "silent"

    child = start(make_spec(before + SPEAKS + code, wrong=silent), folder)
    wait_ready([child], interrupted=lambda: False, on_ready=lambda child: None)
    return child


def stop_all(*children: Child) -> dict[int, bool]:
    """Which ended by themselves, by process number."""
    ended: dict[int, bool] = {}
    stop(
        children,
        forced=lambda: False,
        on_stopped=lambda child, graceful: ended.update({child.process.pid: graceful}),
    )
    return ended


def test_child_that_ends_when_asked_is_not_killed(tmp_path: Path) -> None:
    child = started(WAITS, tmp_path)
    assert os.getpgid(child.process.pid) == child.process.pid
    assert stop_all(child) == {child.process.pid: True}


def test_child_that_ignores_the_request_is_killed_in_time(tmp_path: Path) -> None:
    child = started(WAITS, tmp_path, before=IGNORES)
    assert stop_all(child) == {child.process.pid: False}
    assert not child.alive


@pytest.mark.parametrize("own_session", [False, True])
def test_grandchild_is_ended_with_its_parent(tmp_path: Path, own_session: bool) -> None:
    starts = (
        "import subprocess, sys;"
        f"subprocess.Popen([sys.executable, '-c', {IGNORES + WAITS!r}],"
        f" start_new_session={own_session});"
    )
    child = started(WAITS, tmp_path, before=starts)
    grandchildren = psutil.Process(child.process.pid).children()
    stop_all(child)
    assert len(grandchildren) == 1
    assert wait_for_ends(grandchildren, 5) == []


def test_what_a_crashed_child_left_in_its_group_is_ended(tmp_path: Path) -> None:
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAITS!r}]);"
    child = started(WAITS, tmp_path, before=starts)
    grandchildren = psutil.Process(child.process.pid).children()
    child.process.kill()
    child.process.wait()
    stop_all(child)
    assert len(grandchildren) == 1
    assert wait_for_ends(grandchildren, 5) == []


def test_child_that_never_gets_ready_is_named_with_what_is_missing(tmp_path: Path) -> None:
    code = "print('one\\ntwo\\nthree\\nfour\\nfive\\nsix', flush=True);" + WAITS
    spec = make_spec(code, wrong=lambda: "it does not answer", ready_timeout_s=1)
    child = start(spec, tmp_path)
    with pytest.raises(StackError) as raised:
        wait_ready([child], interrupted=lambda: False, on_ready=lambda child: None)
    stop_all(child)
    assert raised.value.what == "tool at 127.0.0.1:1 is not ready after 1 s"
    assert "it does not answer" in raised.value.why
    assert str(tmp_path / "tool.log") in raised.value.why
    assert "six" in raised.value.why
    assert "one" not in raised.value.why.split()
    assert raised.value.fix == "try again"


def test_request_to_stop_ends_the_waiting(tmp_path: Path) -> None:
    child = start(make_spec(WAITS, wrong=lambda: "not yet"), tmp_path)
    with pytest.raises(Interrupted):
        wait_ready([child], interrupted=lambda: True, on_ready=lambda child: None)
    assert not check_ready(child)
    stop_all(child)
