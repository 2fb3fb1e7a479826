"""Kafka stands still for longer than a question may take: whoever asked lives on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.brokers import own_broker
from integration.token_tracker import asking
from integration.token_tracker.asking import GROUPS
from integration.waiting import eventually
from waybill_local.ports import address, pick
from waybill_local.processes import Child
from waybill_shared.kafka.topics import create_topics

TESTS = Path(__file__).parents[2]
WITHIN_S = 120.0
TIMES = 2
"""A client is replaced after the first, but not so soon after the second."""
PORTS = pick({"kafka": 0, "controller": 0})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with own_broker(tmp_path_factory, PORTS) as child:
        yield child


def test_who_got_no_answer_of_coordinators_asks_again(broker: Child) -> None:
    kafka = address(PORTS["kafka"])
    create_topics(kafka, "silent")
    with subprocess.Popen(
        [sys.executable, "-m", asking.__name__, kafka, "silent.commits"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asks:

        def not_taken() -> int:
            assert asks.stdin is not None and asks.stdout is not None
            asks.stdin.write("\n")
            asks.stdin.flush()
            return int(asks.stdout.readline())

        for _ in range(TIMES):
            eventually(lambda: not_taken() == 0)
            os.kill(broker.process.pid, signal.SIGSTOP)
            try:
                assert not_taken() == GROUPS
            finally:
                os.kill(broker.process.pid, signal.SIGCONT)
        eventually(lambda: not_taken() == 0)
        allowed, _ = asks.communicate(timeout=WITHIN_S)
    assert (int(allowed), asks.returncode) == (GROUPS, 0)
