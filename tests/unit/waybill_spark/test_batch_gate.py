"""When batches of a stage begin: those of its query, and those of replays between them."""

import threading
from contextlib import ExitStack

import pytest

from waybill_spark.tracking.batch_gate import BatchGate
from waybill_spark.tracking.stopping import StageClosed

WAIT_S = 10.0


@pytest.fixture
def gate() -> BatchGate:
    return BatchGate()


def test_it_is_paused_when_no_batch_of_any_sort_runs(gate: BatchGate) -> None:
    """A batch of the query has begun, and waits for one of replays."""
    with gate.batch():
        with ExitStack() as other:
            other.enter_context(gate.batch())
            gate.set_paused(paused=True)
        assert not gate.is_paused, "the first one still runs"
    assert gate.is_paused


def test_who_closes_it_waits_for_all(gate: BatchGate) -> None:
    closing = threading.Thread(target=gate.close, daemon=True)
    with gate.batch():
        with gate.batch():
            pass
        closing.start()
        closing.join(0.05)
        assert closing.is_alive()
    closing.join(WAIT_S)
    assert not closing.is_alive()
    with pytest.raises(StageClosed), gate.batch():
        pass
