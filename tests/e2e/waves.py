"""Waves of large records into one pipeline that writes big batches, and what its readers find.

Each number is sent once. Two that follow one another have a pair in common, which is a key of the
upsert; the greater is to stay. Every wave has one record that breaks a rule, and so is dead.
"""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.every_sink import START_TIMEOUT_S
from e2e.waiting import eventually
from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import read_ranges

RECORDS, BYTES = 100, 50_000  # more than the 4 MiB of this stack together
PAUSE_S = 3.0  # between two waves
OPEN_MAX = 4  # waves that are not done yet: a busy machine is given no more
PROGRESS_S = 240.0  # a busy machine starts drivers slowly
LOOK_S = 0.5  # between two looks at the tokens
SAID_MAX = 20
MANIFEST = """
version: 1
name: {name}
deadLetter: {{budget: 1000 per 1 minute}}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 2}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
    expectations: [{{name: called, expect: customer <> ''}}]
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 2 seconds}}
    steps:
      - name: sized
        sql: "SELECT order_id AS n, order_id div 2 AS pair, length(customer) AS size FROM orders"
    sinks:
      - {{name: added, iceberg: {{table: raw.{table}}}}}
      - name: newest
        iceberg: {{table: raw.{table}_newest, mode: upsert, keys: [pair], orderBy: n}}
      - {{name: warehouse, postgres: {{connection: warehouse, table: public.{table}}}}}
      - {{name: records, kafka: {{topic: {name}.out, partitions: 2, guarantee: at_least_once}}}}
"""
ONCE = ("added", "warehouse")


@dataclass(frozen=True, slots=True)
class Wave:
    good: tuple[int, ...]
    dead: int


class Waves:
    def __init__(self, client: Client, stack: StackState, catalog: SqlCatalog) -> None:
        self.client = client
        self.name = f"waves-{uuid.uuid4().hex[:8]}"
        self.given: dict[str, Wave] = {}
        """By token, in the order in which they were given."""
        self.stack = stack
        self._catalog = catalog
        self._table = self.name.replace("-", "_")
        self._numbers = count()
        operation = client.apply(MANIFEST.format(name=self.name, table=self._table))
        done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        self.uid = str(client.pipeline(self.name).uid)

    def send(self, client: Client) -> str:
        *good, dead = (next(self._numbers) for _ in range(RECORDS))
        rows = [order(number, customer="c" * BYTES) for number in good]
        receipt = client.send(self.name, "orders", [*rows, order(dead, customer="")])
        assert (receipt.accepted, receipt.rejected) == (RECORDS, ())
        self.given[receipt.token] = Wave((*good,), dead)
        return receipt.token

    def found(self) -> dict[str, Counter[int]]:
        """How often each number is in each sink, for who starts to read now."""
        database = Database.of(self.stack)
        return {
            "added": Counter(self._rows(f"raw.{self._table}")),
            "newest": Counter(self._rows(f"raw.{self._table}_newest")),
            "warehouse": Counter(
                number for (number,) in database.ask(f"SELECT n FROM public.{self._table}")
            ),
            "records": Counter(self._numbers_in(f"{self.name}.out")),
        }

    def assert_exact(self) -> None:
        """Of all that was sent, and nothing else, when nothing is on its way."""
        found, given = self.found(), [*self.given.values()]
        said = wrong(found, given)
        assert not said, said[:SAID_MAX]
        sent = {number for wave in given for number in wave.good}
        assert all(numbers.keys() <= sent for numbers in found.values())
        paths = self._catalog.load_table(f"raw.{self._table}").inspect.files()
        names = [str(path) for path in paths.column("file_path").to_pylist()]
        assert any(f"{self.uid}-added-" in name for name in names), "executors write them"

    def tables_left(self) -> list[tuple[str]]:
        left = "SELECT tablename FROM pg_tables WHERE starts_with(tablename, 'waybill_load_')"
        return Database.of(self.stack).ask(left)

    def _numbers_in(self, topic: str) -> list[int]:
        """Up to the first transaction that is open: a paused driver may have one."""
        kafka = make_admin(self.stack.kafka)
        partitions = kafka.identify([topic])[topic].partitions
        ranges = {each: (0, end) for each, end in kafka.stable_ends(topic, partitions).items()}
        found = read_ranges(kafka.cluster, topic, ranges)
        return [json.loads(message.value() or b"{}")["n"] for message in found]

    def _rows(self, table: str) -> list[int]:
        rows = self._catalog.load_table(table).scan(selected_fields=("n",)).to_arrow()
        numbers: list[int] = rows.column("n").to_pylist()
        return numbers


def wrong(found: Mapping[str, Counter[int]], waves: Sequence[Wave]) -> list[str]:
    """What is not as often in a sink as it must be, where these waves are done."""
    good = {number for wave in waves for number in wave.good}
    dead = {wave.dead for wave in waves}
    newest = {number // 2: number for number in found["newest"].elements()}
    return [
        *(
            f"{each}: {n} is there {found[each][n]} times"
            for each in ONCE
            for n in good
            if found[each][n] != 1
        ),
        *(f"records: {n} is missing" for n in good if not found["records"][n]),
        *(f"newest: {n} is not there, nor a later one" for n in good if newest.get(n // 2, -1) < n),
        *(
            f"newest: the key of {n} is there twice"
            for n in found["newest"]
            if found["newest"][n] > 1 or newest[n // 2] != n
        ),
        *(f"{each}: {n} is dead, and there" for each in found for n in dead if found[each][n]),
    ]


class Traffic:
    """Sends waves, and reads all sinks whenever a token is final, until the `with` ends: then every
    token must become so, and every row is where it must be."""

    def __init__(self, waves: Waves) -> None:
        self.waves = waves
        self.final: dict[str, Wave] = {}
        self.reads = 0
        self.failures: list[BaseException] = []
        self._sent, self._done = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(way,)) for way in (self._send, self._read)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sent.set()
        sending, reading = self._threads
        sending.join()
        try:
            if error is None:
                eventually(self._is_over, within_s=PROGRESS_S)
        finally:
            self._done.set()
            reading.join()
        assert not self.failures, self.failures  # also where the test has failed: this may be why
        if error is None:
            self.waves.assert_exact()

    def await_progress(self) -> None:
        """Until a wave is done that is sent from now on."""
        before = len(self.waves.given)
        eventually(lambda: self.failures or self._is_later_done(before), within_s=PROGRESS_S)
        assert not self.failures, self.failures

    def _is_later_done(self, before: int) -> bool:
        return any(token in self.final for token in [*self.waves.given][before:])

    def _is_over(self) -> bool:
        return bool(self.failures) or self.final.keys() == self.waves.given.keys()

    def _run(self, way: Callable[[Client], None]) -> None:
        try:
            with Client(self.waves.stack.url) as client:
                way(client)
        except BaseException as error:  # noqa: BLE001 - raised in the test
            self.failures.append(error)

    def _send(self, client: Client) -> None:
        while not self._sent.wait(PAUSE_S):
            if len(self.waves.given) - len(self.final) < OPEN_MAX:
                self.waves.send(client)

    def _read(self, client: Client) -> None:
        while not self._done.wait(LOOK_S):
            for token in [each for each in self.waves.given if each not in self.final]:
                outcome = client.outcome(token).kind
                if outcome not in ("in_progress", "unknown"):
                    assert outcome == "dead_lettered", f"{token} is {outcome}"
                    self.final[token] = self.waves.given[token]
            if self.final:
                done = [*self.final.values()]
                said = wrong(self.waves.found(), done)
                assert not said, said[:SAID_MAX]
                self.reads += 1
