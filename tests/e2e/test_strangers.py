"""Others write to the topics of a pipeline too, in transactions that stay open or are aborted."""

import json
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog

from e2e.line import WAIT_S, Line
from e2e.waiting import eventually
from waybill import Client, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, read_to_end

JOURNAL = 20


class Stranger:
    """A producer with a transaction of its own, open from the start."""

    def __init__(self, stack: StackState, topic: str, records: list[dict[str, object]]) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": stack.kafka,
                "transactional.id": uuid.uuid4().hex,
                "transaction.timeout.ms": 600_000,
            }
        )
        self._producer.init_transactions(WAIT_S)
        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(topic, value=json.dumps(record).encode())
        assert self._producer.flush(WAIT_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(WAIT_S)


Ending = Callable[[Stranger], None]
ENDINGS = pytest.mark.parametrize(
    ("end", "wanted"),
    [
        pytest.param(Stranger.commit, True, id="commit"),
        pytest.param(Stranger.abort, False, id="abort"),
    ],
)


@pytest.fixture(scope="module")
def line(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> Line:
    line = Line(client, stack, kafka, catalog)
    line.apply()
    line.assert_once(line.send(1))
    return line


@pytest.fixture(scope="module", autouse=True)
def journal(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> Line:
    """An input that Kafka compacts; filled before all else, because compaction takes its time."""
    journal = Line(client, stack, kafka, catalog)
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    topic = journal.create_input(settings)
    producer = make_producer(stack.kafka)
    for at, record in enumerate(journal.orders(JOURNAL, wanted=False)):
        value = json.dumps(record).encode()
        # Each record a segment of its own: only what is not in the last one is ever compacted.
        producer.produce(topic, key=str(at % 4), value=value, timestamp=(at + 1) * 60_000)
        assert producer.flush(WAIT_S) == 0
    return journal


@ENDINGS
def test_behind_an_open_transaction_on_the_input_nothing_is_complete_until_it_ends(
    stack: StackState, line: Line, end: Ending, wanted: bool
) -> None:
    stranger = Stranger(stack, line.topic, line.orders(2, wanted=wanted))
    theirs = line.token_for_all()
    mine = line.send(3)

    line.assert_held_up(theirs)
    line.assert_held_up(mine)
    end(stranger)

    line.assert_once(mine)
    line.assert_once(theirs)


@ENDINGS
def test_behind_an_open_transaction_between_two_stages_nothing_is_complete_until_it_ends(
    stack: StackState, line: Line, end: Ending, wanted: bool
) -> None:
    stranger = Stranger(stack, f"{line.name}.middle", line.orders(2, wanted=wanted))
    token = line.send(3)

    line.assert_held_up(token)
    end(stranger)

    line.assert_once(token)


def test_behind_an_open_transaction_on_the_last_topic_nothing_is_complete_until_it_ends(
    stack: StackState, line: Line
) -> None:
    stranger = Stranger(stack, f"{line.name}.out", line.orders(2, wanted=False))
    token = line.send(3)

    line.assert_held_up(token)
    stranger.abort()

    line.assert_once(token)


def test_aborted_records_at_the_end_of_the_input_hold_nothing_up(
    stack: StackState, line: Line
) -> None:
    Stranger(stack, line.topic, line.orders(2, wanted=False)).abort()

    line.assert_once(line.token_for_all())
    line.assert_once(line.send(1))


@pytest.mark.parametrize(
    ("customer", "sinks"),
    [
        pytest.param("nobody", {"middle"}, id="by the first stage"),
        pytest.param("unwanted", {"middle", "out", "lake"}, id="by the last stage"),
    ],
)
def test_records_that_are_all_filtered_out_complete_and_each_sink_counts_their_batch(
    line: Line, customer: str, sinks: set[str]
) -> None:
    line.assert_once(line.send(1))
    before = line.sequences()

    line.assert_once(line.send_filtered(customer))

    between = line.sequences()
    assert {sink for sink in between if between[sink] > before[sink]} == sinks
    line.assert_once(line.send(1))
    after = line.sequences()
    assert all(after[sink] > between[sink] for sink in after)


def test_a_compacted_input_is_complete_with_what_is_left_of_it(
    stack: StackState, journal: Line
) -> None:
    def left() -> set[int]:
        """Offsets, which are the orders' numbers too."""
        return {position_of(record)[1] for record in read_to_end(stack.kafka, journal.topic, [0])}

    eventually(lambda: len(left()) < JOURNAL, within_s=WAIT_S)
    journal.wanted |= left()
    gone = set(range(JOURNAL)) - journal.wanted
    journal.apply()

    journal.assert_once(journal.token_for((0, min(gone))))
    journal.assert_once(journal.token_for_all())
    journal.assert_once(journal.send(2))


@pytest.mark.usefixtures("alone")
def test_a_pipeline_that_starts_at_latest_gets_what_was_open_then_and_is_committed_later(
    client: Client,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    produce: Callable[[str, dict[str, object]], Position],
) -> None:
    late = Line(client, stack, kafka, catalog)
    topic = late.create_input()
    (early,) = late.orders(1, wanted=False)
    produce(topic, early)
    stranger = Stranger(stack, topic, late.orders(2))
    late.apply(starting="latest")

    token = late.send(3)
    late.assert_held_up(token)
    stranger.commit()

    late.assert_once(token)
