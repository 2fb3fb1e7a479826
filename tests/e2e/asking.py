"""Asks for all tokens of a ledger, again and again, and reads the table after the answers."""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Self

import httpx2
from pyiceberg.catalog.sql import SqlCatalog

from e2e.load import Ledger, numbers_of
from e2e.waiting import eventually

READS_MIN = 7  # in each round
GROWN_MIN = 4  # reads that had to show more than any before
ASK_PAUSE_S = 0.1
READ_PAUSE_S_MAX = 1.0
ASKED_AGAIN = 50  # complete tokens in each question, to hear that they still are
ASKED_AT_ONCE = 500
OPEN = {"in_progress", "unknown"}
View = Mapping[str, Sequence[str]]
ALL: Final[View] = {}


class Asker:
    """Asks for every token until it is complete, and now and then for those that are.

    `view`: what is asked of each; `since`: only the tokens that the ledger has from there on.
    """

    def __init__(
        self, ledger: Ledger, dice: random.Random, *, view: View = ALL, since: int = 0
    ) -> None:
        self.complete: dict[str, None] = {}
        self.lies: list[str] = []
        self._ledger = ledger
        self._dice = dice
        self._view = view
        self._since = since
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def open(self) -> list[str]:
        """Tokens that are not known to be complete, the oldest first."""
        given = list(self._ledger.given)[self._since :]
        return [token for token in given if token not in self.complete]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """What it has found is asserted by who reads, and here of what came last."""
        self.stop()
        assert not self.lies, self.lies

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
        again = self._dice.sample(done, min(ASKED_AGAIN, len(done)))
        asked = self.open[:ASKED_AT_ONCE] + again
        try:
            answer = http.post("/v1/tokens/query", json={"tokens": asked, "view": self._view})
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

    def enough(self, rounds: int) -> bool:
        return self.reads >= rounds * READS_MIN and self.grown >= rounds * GROWN_MIN

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
