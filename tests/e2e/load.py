"""Sends orders all the time, over HTTP and straight to Kafka, and remembers what it was told.

Never sends a number twice: what was refused, or is not known to be kept, goes on with new ones.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Self

from confluent_kafka import Message
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Pipeline, order
from waybill import Client, NotReady, Position, Unreachable
from waybill_local.stack import StackState
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait, read_to_end

PACE_S = 0.1  # between two requests of one sender
ROWS_EACH = 3
READY_TIMEOUT_S = 120.0


class Ledger:
    """What was sent to one pipeline, by all who ever sent to it."""

    def __init__(self, stack: StackState, pipeline: Pipeline) -> None:
        self.stack = stack
        self.pipeline = pipeline
        self.topic_id = make_admin(stack.kafka).identify([pipeline.topic])[pipeline.topic].topic_id
        self.given: dict[str, list[int]] = {}
        """By token, in the order in which they were given."""
        self.unsure: set[int] = set()
        self.errors: list[NotReady | Unreachable | Retryable] = []
        self.longest_s = 0.0
        self._numbers = count()
        self._lock = threading.Lock()

    def take(self, size: int) -> list[int]:
        with self._lock:
            return [next(self._numbers) for _ in range(size)]

    def keep(self, token: str, numbers: list[int]) -> None:
        with self._lock:
            self.given[token] = numbers

    def doubt(self, numbers: list[int], error: NotReady | Unreachable | Retryable) -> None:
        with self._lock:
            self.unsure |= set(numbers)
            self.errors.append(error)

    def took(self, seconds: float) -> None:
        with self._lock:
            self.longest_s = max(self.longest_s, seconds)


class Load:
    """Two ways of sending at once, each in threads of its own, until the end of the `with`."""

    def __init__(
        self, ledger: Ledger, *, over_http: int = 2, straight: int = 1, pace_s: float = PACE_S
    ) -> None:
        self.failures: list[BaseException] = []
        self._pace_s = pace_s
        self._ledger = ledger
        self._stop = threading.Event()
        ways = [self._send] * over_http + [self._produce] * straight
        self._threads = [threading.Thread(target=self._run, args=(way,)) for way in ways]

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
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            assert not self.failures, self.failures

    def _run(self, way: Callable[[Client], None]) -> None:
        try:
            with Client(self._ledger.stack.url) as client:
                way(client)
        except BaseException as error:  # noqa: BLE001 - told at the end of the `with`
            self.failures.append(error)

    def _send(self, client: Client) -> None:
        ledger = self._ledger
        while not self._stop.wait(self._pace_s):
            numbers = ledger.take(ROWS_EACH)
            began = time.monotonic()
            try:
                rows = [order(number) for number in numbers]
                receipt = client.send(ledger.pipeline.name, "orders", rows)
                assert (receipt.accepted, receipt.rejected) == (len(numbers), ()), receipt
                ledger.keep(receipt.token, numbers)
            except (NotReady, Unreachable) as error:
                ledger.doubt(numbers, error)
            ledger.took(time.monotonic() - began)

    def _produce(self, client: Client) -> None:
        ledger = self._ledger
        producer = make_producer(ledger.stack.kafka)
        while not self._stop.wait(self._pace_s):
            numbers = ledger.take(1)
            value = json.dumps(order(numbers[0])).encode()
            try:
                message = produce_and_wait(producer, ledger.pipeline.topic, "", value)
            except Retryable as error:
                ledger.doubt(numbers, error)
                continue
            ledger.keep(self._token_for(client, message), numbers)

    def _token_for(self, client: Client, message: Message) -> str:
        """Whoever has the position can ask for its token again and again."""
        ledger = self._ledger
        partition, offset = position_of(message)
        position = Position(
            topic=ledger.pipeline.topic,
            topic_id=ledger.topic_id,
            partition=partition,
            offset=offset,
        )
        return when_ready(
            lambda: client.token_for(ledger.pipeline.name, positions=[position]).token
        )


def when_ready(ask: Callable[[], str]) -> str:
    """The answer, as soon as nobody says any more "not now"."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            return ask()
        except (NotReady, Unreachable):
            if time.monotonic() > deadline:
                raise
            time.sleep(PACE_S)


def assert_clear(errors: Sequence[NotReady | Unreachable | Retryable]) -> None:
    """What a service refused it refused by a problem of ours, with the id of the request."""
    for error in errors:
        if isinstance(error, NotReady):
            assert error.type.startswith("urn:waybill:problem:"), error
            assert error.request_id, error


def assert_rows_once(ledger: Ledger, catalog: SqlCatalog) -> None:
    """Every row that Kafka has is once in the topic between the stages, and once in the table."""
    pipeline = ledger.pipeline
    taken = Counter(numbers_in(ledger.stack, pipeline.topic))
    promised = {number for numbers in ledger.given.values() for number in numbers}
    assert set(taken.values()) == {1}, "ingress wrote a row twice"
    assert promised <= taken.keys() <= promised | ledger.unsure
    assert Counter(numbers_in(ledger.stack, f"{pipeline.name}.enriched")) == taken
    assert Counter(numbers_of(catalog, pipeline.table)) == taken


def numbers_in(stack: StackState, topic: str) -> list[int]:
    """Order ids that a reader of committed records finds in all partitions."""
    partitions = make_admin(stack.kafka).identify([topic])[topic].partitions
    found = read_to_end(stack.kafka, topic, partitions)
    return [int(json.loads(message.value() or b"{}")["order_id"]) for message in found]


def numbers_of(catalog: SqlCatalog, table: str) -> list[int]:
    """Order ids that a reader finds who loads the table now."""
    rows = catalog.load_table(table).scan(selected_fields=("order_id",)).to_arrow()
    return [int(number) for number in rows.column("order_id").to_pylist()]
