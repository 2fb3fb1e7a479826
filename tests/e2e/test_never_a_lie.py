"""Under load and faults drawn by a seed: whoever reads the table after a token was answered
`complete` finds its rows, no answer is ever taken back, and at the end every row is there once."""

import random
import time
from collections.abc import Callable, Mapping

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.asking import Asker, Reader
from e2e.chaos import FAULTS, Chaos
from e2e.conftest import Apply
from e2e.load import Ledger, Load, assert_clear, assert_rows_once
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState

SEED = 20_261_121
SOME_FAULTS = dict.fromkeys(
    ("kill the driver", "hold token_tracker", "flush redis", "kill status"), 1
)
TOKENS_MIN = 50
RUN_TIMEOUT_S = 400.0  # it takes about 80; a busy machine starts drivers slowly
ARRIVAL_TIMEOUT_S = 180.0
PACE_S = 0.25


@pytest.fixture(scope="module")
def ledger(stack: StackState, apply_orders: Apply) -> Ledger:
    return Ledger(stack, apply_orders())


def read_until(done: Callable[[], bool], reader: Reader, asker: Asker) -> None:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while not done():
        assert not asker.lies, asker.lies
        assert time.monotonic() < deadline, f"{reader.reads} reads, {reader.grown} of them grown"
        reader.read()


@pytest.mark.timeout(700)
@pytest.mark.parametrize(
    ("faults", "rounds"),
    [pytest.param(SOME_FAULTS, 1, id="some faults"), pytest.param(FAULTS, 3, id="all faults")],
)
def test_what_was_answered_complete_is_there_for_every_later_read(
    catalog: SqlCatalog, ledger: Ledger, client: Client, faults: Mapping[str, int], rounds: int
) -> None:
    print(f"seed {SEED}")
    uid = str(client.pipeline(ledger.pipeline.name).uid)
    asker = Asker(ledger, random.Random(SEED))
    reader = Reader(asker, ledger, catalog)
    chaos = Chaos(ledger, uid, random.Random(SEED), asker.complete, faults)
    before = len(ledger.given)

    def done() -> bool:
        given = len(ledger.given) - before
        return reader.enough(rounds) and given >= rounds * TOKENS_MIN and not chaos.running

    asker.start()
    try:
        with Load(ledger, pace_s=PACE_S):
            eventually(lambda: asker.complete or asker.lies, within_s=RUN_TIMEOUT_S)
            chaos.start()
            read_until(done, reader, asker)
        eventually(lambda: asker.lies or not asker.open, within_s=ARRIVAL_TIMEOUT_S)
    finally:
        chaos.stop()
        asker.stop()

    print(f"{len(ledger.given)} tokens, {reader.reads} reads, {reader.grown} of them grown")
    assert not chaos.failures, chaos.failures
    assert not asker.lies, asker.lies
    assert_clear(ledger.errors)
    assert_rows_once(ledger, catalog)
