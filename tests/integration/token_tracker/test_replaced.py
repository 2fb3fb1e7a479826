"""A tracker that was replaced saves nothing, and one that was killed hides nothing."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from builders import ORDERS_ID, TENANT, make_commit, make_definition, make_fact, make_snapshot
from integration.conftest import Surroundings
from integration.token_tracker import stopped
from integration.token_tracker.member import WITHIN_S, Member, reached
from integration.token_tracker.stopped import REFUSED
from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact, Snapshot, pipeline_key
from waybill_shared.contract.slots import Slot
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end
from waybill_shared.kafka.partitioner import partition_of
from waybill_token_tracker.adapters.journal import TRANSACTION_TIMEOUT_S
from waybill_token_tracker.core.snapshots import pack

TESTS = Path(__file__).parents[2]
PARTITIONS = 8
BROKER_LOOKS_EVERY_S = 10.0  # for transactions that took too long
Start = Callable[[Surroundings, str, int], "subprocess.Popen[str]"]


@pytest.fixture
def start_one_that_stops() -> Iterator[Start]:
    with ExitStack() as stack:

        def start(around: Surroundings, uid: str, taken: int) -> "subprocess.Popen[str]":
            """As soon as it stands still."""
            command = [sys.executable, "-m", stopped.__name__]
            process = stack.enter_context(
                subprocess.Popen(
                    [*command, around.kafka, around.prefix, uid, str(taken)],
                    env={**os.environ, "PYTHONPATH": str(TESTS)},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            found = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert found is not None and found.si_code == os.CLD_STOPPED
            return process

        yield start


@pytest.fixture
def killed(around: Surroundings) -> Producer:
    """That of a tracker which nobody hears any more: nothing ends its transaction."""
    producer = make_producer(
        around.kafka,
        **{
            "transactional.id": f"{around.prefix}/token_tracker/killed",
            "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            "message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
        },
    )
    producer.init_transactions()
    return producer


def tell(around: Surroundings, fact: Fact) -> None:
    key = pipeline_key(fact.tenant, fact.pipeline_uid)
    produce_and_wait(
        make_producer(around.kafka), f"{around.prefix}.commits", key, codec.encode(fact)
    )


def commit(taken: int, uid: str, *, sequence: int) -> Fact:
    return make_fact(make_commit({(ORDERS_ID, 0): taken}, sequence=sequence), uid=uid)


def test_a_tracker_that_stood_still_saves_nothing_behind_its_successor(
    around: Surroundings, start_one_that_stops: Start
) -> None:
    """It had facts that were in no snapshot, and the next one has saved what came later."""
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid))
    tell(around, commit(3, uid, sequence=0))
    first = start_one_that_stops(around, uid, 3)
    second = Member(around)
    second.feed_until(lambda: reached(second, uid) == 3)
    tell(around, commit(5, uid, sequence=1))
    second.feed_until(lambda: reached(second, uid) == 5)
    second.tracker.save(whole=True)
    saved = snapshots_in(around)
    assert uid in {snapshot.pipeline_uid for snapshot in saved}

    first.send_signal(signal.SIGCONT)
    said, _ = first.communicate(timeout=WITHIN_S)
    assert first.returncode == REFUSED, said

    assert snapshots_in(around) == saved
    second.close()
    third = Member(around)
    third.feed_until(lambda: reached(third, uid) >= 0)
    third.close()
    assert reached(third, uid) == 5


def test_who_is_no_member_of_the_group_saves_nothing(around: Surroundings) -> None:
    """From nobody Kafka takes every offset."""
    stranger = Member(around)
    try:
        with pytest.raises(Retryable, match="the group knows this process no more"):
            stranger.journal.save([], {0: 7})
    finally:
        stranger.close()


def test_who_takes_over_waits_for_what_a_killed_tracker_left_open(
    around: Surroundings, killed: Producer
) -> None:
    """Behind it another one may have saved; what it left is dropped."""
    aborted = str(uuid.uuid4())
    saved = str(uuid.uuid4())
    while place_of(saved) != place_of(aborted):
        saved = str(uuid.uuid4())
    topic = f"{around.prefix}.frontiers"
    killed.begin_transaction()
    killed.produce(topic, key=pipeline_key(TENANT, aborted), value=snapshot_of(aborted))
    assert killed.flush(TRANSACTION_TIMEOUT_S) == 0
    began = time.monotonic()
    producer = make_producer(around.kafka)
    produce_and_wait(producer, topic, pipeline_key(TENANT, saved), snapshot_of(saved))

    member = Member(around)
    try:
        member.feed_until(lambda: saved in member.store.slots)
        assert aborted not in member.store.slots
        assert time.monotonic() - began < TRANSACTION_TIMEOUT_S + 2 * BROKER_LOOKS_EVERY_S
    finally:
        member.close()


def snapshots_in(around: Surroundings) -> list[Snapshot]:
    stored = read_to_end(around.kafka, f"{around.prefix}.frontiers", range(PARTITIONS))
    return sorted(
        (codec.decode(Snapshot, message.value() or b"") for message in stored),
        key=lambda snapshot: (snapshot.at, snapshot.pipeline_uid),
    )


def snapshot_of(uid: str) -> bytes:
    slot, place = Slot(tenant=TENANT, pipeline_uid=uid), place_of(uid)
    return codec.encode(make_snapshot(pack(slot, ()), partition=place, uid=uid))


def place_of(uid: str) -> int:
    return partition_of(pipeline_key(TENANT, uid), PARTITIONS)
