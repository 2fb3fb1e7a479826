"""Under load and faults drawn by a seed: whoever reads the table after a token was answered
`complete` finds its rows, no answer is ever taken back, and at the end every row is there once."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import httpx2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.chaos import Chaos
from e2e.conftest import Apply
from e2e.load import Ledger, Load, assert_clear, assert_rows_once, numbers_of
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState

SEED = 20_261_121
TOKENS_MIN = 150
READS_MIN = 20
GROWN_MIN = 10  # reads that had to show more than any before
RUN_TIMEOUT_S = 400.0  # it takes about 80; a busy machine starts drivers slowly
ARRIVAL_TIMEOUT_S = 180.0
ASK_PAUSE_S = 0.1
READ_PAUSE_S_MAX = 1.0
PACE_S = 0.25
ASKED_AGAIN = 50  # complete tokens in each question, to hear that they still are
ASKED_AT_ONCE = 500
OPEN = {"in_progress", "unknown"}


@pytest.fixture(scope="module")
def ledger(stack: StackState, apply_orders: Apply) -> Ledger:
    return Ledger(stack, apply_orders())


class Asker:
    """Asks for every token until it is complete, and now and then for those that are."""

    def __init__(self, ledger: Ledger, dice: random.Random) -> None:
        self.complete: dict[str, None] = {}
        self.lies: list[str] = []
        self._ledger = ledger
        self._dice = dice
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def await_more(self, than: int) -> None:
        """Until more tokens are complete, or for a while: what is there must stay there."""
        until = time.monotonic() + READ_PAUSE_S_MAX
        eventually(lambda: len(self.complete) > than or time.monotonic() > until)

    def _run(self) -> None:
        url = self._ledger.stack.url
        try:
            with httpx2.Client(base_url=url, timeout=30, trust_env=False) as http:
                while not self._stop.wait(ASK_PAUSE_S):
                    for token, outcome in self._ask(http).items():
                        self._hear(token, outcome)
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.lies.append(f"asking ended: {error!r}")

    def _hear(self, token: str, outcome: str) -> None:
        if outcome == "complete":
            self.complete[token] = None
        elif outcome not in OPEN or (token in self.complete and outcome != "unknown"):
            was = "complete" if token in self.complete else "open"
            self.lies.append(f"{token} was {was} and is {outcome}")

    def _ask(self, http: httpx2.Client) -> dict[str, str]:
        """Nothing, while the stack cannot be asked."""
        done = list(self.complete)
        wanted = [token for token in list(self._ledger.given) if token not in self.complete]
        asked = wanted[:ASKED_AT_ONCE] + self._dice.sample(done, min(ASKED_AGAIN, len(done)))
        try:
            answer = http.post("/v1/tokens/query", json={"tokens": asked})
        except httpx2.TransportError:
            return {}
        if answer.status_code != httpx2.codes.OK:
            assert answer.status_code in {502, 503, 504}, answer.text
            return {}
        outcomes = [str(each.get("outcome", each)) for each in answer.json()["outcomes"]]
        return dict(zip(asked, outcomes, strict=True))


class Reader:
    """Reads the table all the time, each time after remembering what was answered before."""

    def __init__(self, asker: Asker, ledger: Ledger, catalog: SqlCatalog) -> None:
        self.reads = 0
        self.grown = 0
        self._asker = asker
        self._ledger = ledger
        self._catalog = catalog
        self._shown = 0

    @property
    def enough(self) -> bool:
        return self.reads >= READS_MIN and self.grown >= GROWN_MIN

    def read(self) -> None:
        self._asker.await_more(self._shown)
        complete = list(self._asker.complete)
        rows = Counter(numbers_of(self._catalog, self._ledger.pipeline.table))
        for token in complete:
            wrong = [number for number in self._ledger.given[token] if rows[number] != 1]
            assert not wrong, f"{token} was complete; not once in read {self.reads}: {wrong}"
        self.reads += bool(complete)
        self.grown += len(complete) > self._shown
        self._shown = len(complete)


def read_until(done: Callable[[], bool], reader: Reader, asker: Asker) -> None:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while not done():
        assert not asker.lies, asker.lies
        assert time.monotonic() < deadline, f"{reader.reads} reads, {reader.grown} of them grown"
        reader.read()


@pytest.mark.timeout(700)
def test_what_was_answered_complete_is_there_for_every_later_read(
    catalog: SqlCatalog, ledger: Ledger, client: Client
) -> None:
    print(f"seed {SEED}")
    uid = str(client.pipeline(ledger.pipeline.name).uid)
    asker = Asker(ledger, random.Random(SEED))
    reader = Reader(asker, ledger, catalog)
    chaos = Chaos(ledger, uid, random.Random(SEED), asker.complete)

    def done() -> bool:
        return reader.enough and len(ledger.given) >= TOKENS_MIN and not chaos.running

    asker.start()
    try:
        with Load(ledger, pace_s=PACE_S):
            eventually(lambda: asker.complete or asker.lies, within_s=RUN_TIMEOUT_S)
            chaos.start()
            read_until(done, reader, asker)
        eventually(
            lambda: asker.lies or len(asker.complete) == len(ledger.given),
            within_s=ARRIVAL_TIMEOUT_S,
        )
    finally:
        chaos.stop()
        asker.stop()

    print(f"{len(ledger.given)} tokens, {reader.reads} reads, {reader.grown} of them grown")
    assert not chaos.failures, chaos.failures
    assert not asker.lies, asker.lies
    assert_clear(ledger.errors)
    assert_rows_once(ledger, catalog)
