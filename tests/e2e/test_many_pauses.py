"""A pipeline is paused a hundred times under load: its driver stays as it was."""

import time
from typing import NamedTuple

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.test_pausing import assert_no_batch_in_pauses
from e2e.under_load import await_done, load
from e2e.waiting import drivers_of, run_of
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

PAUSES = 100
EACH = 10  # pauses between two looks
PAUSE_S = 30.0  # of a pause, and of what follows it: a batch on a loaded machine takes seconds
GROWS = 20  # open files or threads; a leak of one at each pause is more


class Size(NamedTuple):
    """Open files of all processes of a driver, and the threads of Python: Spark's own pools have up
    to a hundred threads while batches run, and end them a minute later."""

    files: int
    threads: int


def size_of(processes: list[psutil.Process]) -> Size:
    return Size(
        sum(each.num_fds() for each in processes),
        sum(each.num_threads() for each in processes if each.name().startswith("python")),
    )


def await_complete(client: Client, token: str) -> None:
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"


@pytest.mark.timeout(600)
def test_a_hundred_pauses_leave_each_row_once_and_the_driver_as_it_was(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    pipeline, tokens = EverySink(client, stack, kafka, catalog), list[str]()
    name, sizes = pipeline.name, list[Size]()
    await_complete(client, pipeline.send(5, client))
    first, run = drivers_of(stack, pipeline.uid), run_of(client, stack, name)
    with load(stack, pipeline, tokens):
        for number in range(PAUSES):
            began = time.monotonic()
            await_done(client, client.pause(name))
            await_done(client, client.resume(name))
            assert time.monotonic() - began < PAUSE_S
            if number % EACH == EACH - 1:
                await_complete(client, tokens[-1])
                sizes.append(size_of(drivers_of(stack, pipeline.uid)))
    assert {*first} <= {*drivers_of(stack, pipeline.uid)}
    assert run_of(client, stack, name) == run
    pipeline.assert_once(client.merge(tokens))
    assert_no_batch_in_pauses(client, name, PAUSES)
    usual, last = sizes[1], sizes[-1]
    assert last.files <= usual.files + GROWS, sizes
    assert last.threads <= usual.threads + GROWS, sizes
