"""A turn that fails is tried again, the end is saved, and lag that cannot be seen is no end."""

import threading
from collections.abc import Callable, Iterable

import pytest

from builders import UID, make_definition, make_fact
from scraping import read_scrape
from unit.token_tracker.fakes import FakeStore
from unit.token_tracker.line import Bench, commit
from waybill_shared.contract.errors import Retryable
from waybill_shared.process import metrics
from waybill_shared.process.health import Health
from waybill_token_tracker import loop
from waybill_token_tracker.app.lag import LagWatch
from waybill_token_tracker.loop import Loop, watch_lag


class Around:
    """A stream that takes one step in each turn and then ends the loop; and no lag."""

    def __init__(self) -> None:
        self.store = FakeStore()
        self.bench = Bench(store=self.store)
        self.steps: list[Callable[[], None]] = []
        self.stop = threading.Event()

    def feed(self, timeout_s: float) -> None:
        if self.steps:
            self.steps.pop(0)()
        else:
            self.stop.set()

    def ends(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        return {}

    def write(self, groups: object) -> dict[str, str]:
        return {}

    def delete(self, groups: object) -> dict[str, str]:
        return {}

    def turn(self) -> None:
        lag = LagWatch(self, self, "waybill")
        tracker = self.bench.tracker
        Loop(self, tracker, self.store, lag, Health()).run(self.stop)  # type: ignore[arg-type]


class Lag(LagWatch):
    """Cannot be seen at first, each time for another reason."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = [*faults]
        self.seen = threading.Event()

    def look(self) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.seen.set()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RETRY_S", 0.0)
    monkeypatch.setattr(loop, "LOOK_INTERVAL_S", 0.001)


def counted(name: str) -> float:
    return read_scrape(metrics.text_of("token_tracker", {}).decode()).value(name) or 0


def away() -> None:
    raise Retryable("kafka is away")


def nothing() -> None:
    """The second turn writes what the first found missing."""


def test_a_turn_that_fails_is_tried_again_and_the_end_is_saved() -> None:
    before = counted("waybill_loop_retries_total")
    around = Around()
    around.steps = [away, around.bench.feed, nothing]
    around.bench.append(make_fact(make_definition()), commit(1, sequence=0))
    around.turn()
    assert counted("waybill_loop_retries_total") == before + 1
    assert around.bench.reached() == 1
    assert around.bench.journal.snapshots.keys() == {UID}
    assert around.bench.journal.positions == {0: 2}


def test_an_end_that_cannot_be_saved_is_an_end() -> None:
    around = Around()
    around.steps = [around.bench.feed, nothing, lambda: setattr(around.bench.journal, "away", True)]
    around.bench.append(make_fact(make_definition()))
    around.turn()
    assert around.bench.journal.snapshots == {}


def test_lag_that_cannot_be_seen_is_counted_and_looked_at_again() -> None:
    before = counted("waybill_lag_failures_total")
    lag = Lag(Retryable("kafka is away"), RuntimeError("a fault of ours"))
    with watch_lag(lag):
        assert lag.seen.wait(10)
    assert counted("waybill_lag_failures_total") == before + 2
    assert "lag" not in {thread.name for thread in threading.enumerate()}
