"""Tokens that are asked `through` three pipelines in a row, while their stages and sinks change,
their drivers are killed, and at last the one in the middle is deleted and made again: whoever reads
the last table after a `complete` finds each row of the token once."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import httpx2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.asking import ASKED_AT_ONCE, Asker, Reader
from e2e.conftest import START_TIMEOUT_S, TRIGGER, Pipeline
from e2e.faults import kill
from e2e.load import Ledger, Load, assert_clear, numbers_of
from e2e.waiting import drivers_of, eventually, gone
from waybill import Client
from waybill_local.stack import StackState

SEED = 44
COMPLETE_MIN = 300
AFTER_MIN = 20  # of tokens that were given when the middle one was there again
PROGRESS_TIMEOUT_S = 120.0
RUN_TIMEOUT_S = 300.0  # on an idle machine it takes about 90
PACE_S = 0.4
STEPS: Final = (
    ("change first", "kill middle"),
    ("change middle", "kill last"),
    ("kill first", "change last"),
    ("change first", "change last"),
)
"""What happens at once."""
FIRST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 2}}
    key: order_id
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: take
    inputs: [orders]
    {trigger}
    sinks: [{{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 2}}}}]
"""
MIDDLE = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {read}}}
    startingOffsets: {starting}
    schema: "order_id BIGINT, amount DECIMAL(10,2)"
stages:
  - name: taxed
    inputs: [orders]
    {trigger}
    steps: [{{name: taxed, sql: "SELECT *, amount * {factor} AS tax FROM orders"}}]
    sinks: [{{name: inner, kafka: {{topic: {inner}, key: order_id, partitions: 2}}}}]
  - name: passed
    inputs: [inner]
    {trigger}
    sinks: [{{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 2}}}}]
"""
LAST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {read}}}
    schema: "order_id BIGINT, tax DECIMAL(12,3)"
stages:
  - name: load
    inputs: [orders]
    {trigger}
    sinks:
      - {{name: lake, iceberg: {{table: raw.{table}}}}}
"""
SIDE_STAGE = """\
  - name: side
    inputs: [orders]
    {trigger}
    sinks: [{{name: side, kafka: {{topic: {name}.side, partitions: 1}}}}]
"""
SIDE_SINK = """\
      - {{name: copy, kafka: {{topic: {name}.copy, partitions: 1}}}}
"""


class Chain:
    """Three pipelines, each of which reads what the one before it writes."""

    def __init__(self, client: Client, stack: StackState) -> None:
        self.client = client
        self.stack = stack
        made = f"way-{uuid.uuid4().hex[:8]}"
        self.names = {each: f"{made}-{each}" for each in ("first", "middle", "last")}
        self.table = f"raw.{made.replace('-', '_')}"
        self.view = {"through": [self.names["middle"], self.names["last"]]}
        self._life = 1
        self._changed = dict.fromkeys(self.names, 0)

    @property
    def sent_to(self) -> Pipeline:
        name = self.names["first"]
        return Pipeline(name=name, topic=f"{name}.in", table=self.table)

    def apply(self, which: str, *, starting: str = "earliest") -> None:
        manifest = self._manifest(which, changed=self._changed[which] % 2 == 1)
        read = {"middle": "first", "last": "middle"}.get(which, which)
        text = manifest.format(
            name=self.names[which],
            read=f"{self.names[read]}.out",
            table=self.table.removeprefix("raw."),
            starting=starting,
            inner=f"{self.names[which]}.inner.{self._life}",
            factor=f"0.{self._changed[which] + 1}",
            trigger=TRIGGER,
        )
        operation = self.client.apply(text)
        done = self.client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def step(self, step: str) -> None:
        verb, _, which = step.partition(" ")
        if verb == "kill":
            uid = str(self.client.pipeline(self.names[which]).uid)
            kill(drivers_of(self.stack, uid))
        else:
            self._changed[which] += 1
            self.apply(which)

    def make_middle_again(self) -> None:
        """It begins with what comes from then on, also between its stages: what the one before has
        written there would be written again."""
        self._life += 1
        name = self.names["middle"]
        self.client.delete(name)
        eventually(lambda: gone(self.client, name), within_s=PROGRESS_TIMEOUT_S)
        self.apply("middle", starting="latest")
        self.client.wait_pipeline(name, timeout_s=START_TIMEOUT_S)

    def _manifest(self, which: str, *, changed: bool) -> str:
        """Another time with a stage more, with other SQL, or with a sink more."""
        if which == "middle":
            return MIDDLE
        manifest, more = (FIRST, SIDE_STAGE) if which == "first" else (LAST, SIDE_SINK)
        return manifest + more if changed else manifest


class Steps:
    """All of them; before each of them something has arrived since the one before."""

    def __init__(self, chain: Chain, ledger: Ledger, asker: Asker) -> None:
        self.failures: list[BaseException] = []
        self._chain = chain
        self._ledger = ledger
        self._asker = asker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for together in STEPS:
                print(f"{time.monotonic() - began:6.1f} s  {', '.join(together)}")
                with ThreadPoolExecutor() as pool:
                    [*pool.map(self._chain.step, together)]
                given = len(self._ledger.given)
                eventually(partial(self._moved, given), within_s=PROGRESS_TIMEOUT_S)
                if self._stop.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - raised by the test
            self.failures.append(error)

    def _moved(self, given: int) -> bool:
        later = list(self._ledger.given)[given:]
        return self._stop.is_set() or any(token in self._asker.complete for token in later)


def read_until(done: Callable[[], bool], reader: Reader, asker: Asker) -> None:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while not done():
        assert not asker.lies, asker.lies
        assert time.monotonic() < deadline, f"{reader.reads} reads, {len(asker.complete)} complete"
        reader.read()


@pytest.fixture(scope="module")
def chain(client: Client, stack: StackState) -> Chain:
    made = Chain(client, stack)
    for which in made.names:
        made.apply(which)
    return made


@pytest.mark.timeout(700)
def test_what_is_complete_through_three_pipelines_is_there_once(
    chain: Chain, catalog: SqlCatalog
) -> None:
    ledger = Ledger(chain.stack, chain.sent_to)
    with Load(ledger, pace_s=PACE_S):
        complete = follow_through_changes(chain, ledger, catalog)
        chain.make_middle_again()
        later = asker_of(chain, ledger)
        reader = Reader(later, ledger, catalog)
        with later:
            read_until(lambda: len(later.complete) >= AFTER_MIN, reader, later)
    print(f"{complete} + {len(later.complete)} of {len(ledger.given)} tokens complete")
    assert_complete_are_there(chain, ledger, catalog)
    assert_clear(ledger.errors)


def follow_through_changes(chain: Chain, ledger: Ledger, catalog: SqlCatalog) -> int:
    """How many are complete when all steps are done and enough was read."""
    asker = asker_of(chain, ledger)
    steps = Steps(chain, ledger, asker)
    with asker:
        eventually(lambda: asker.complete or asker.lies, within_s=RUN_TIMEOUT_S)
        steps.start()
        try:
            read_until(
                lambda: not steps.running and len(asker.complete) >= COMPLETE_MIN,
                Reader(asker, ledger, catalog),
                asker,
            )
        finally:
            steps.stop()
    assert not steps.failures, steps.failures
    return len(asker.complete)


def asker_of(chain: Chain, ledger: Ledger) -> Asker:
    """For the tokens that are given from now on."""
    return Asker(ledger, random.Random(SEED), view=chain.view, since=len(ledger.given))


def assert_complete_are_there(chain: Chain, ledger: Ledger, catalog: SqlCatalog) -> None:
    """Also those that were on their way when the middle one was deleted, asked through the new one;
    and nothing at all is there twice."""
    given = list(ledger.given)
    complete: list[str] = []
    with httpx2.Client(base_url=chain.stack.url, timeout=60, trust_env=False) as http:
        for at in range(0, len(given), ASKED_AT_ONCE):
            asked = given[at : at + ASKED_AT_ONCE]
            answer = http.post("/v1/tokens/query", json={"tokens": asked, "view": chain.view})
            outcomes = [each.get("outcome", each) for each in answer.json()["outcomes"]]
            pairs = zip(asked, outcomes, strict=True)
            complete += [token for token, outcome in pairs if outcome == "complete"]
            print(Counter(map(str, outcomes)))
    rows = Counter(numbers_of(catalog, chain.table))
    assert set(rows.values()) == {1}
    for token in complete:
        assert all(rows[number] == 1 for number in ledger.given[token]), token
