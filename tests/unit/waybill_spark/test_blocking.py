"""When a stage is said to wait for an open transaction, on topics and a clock of plain Python."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.words import Obstacle
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_spark.driver.reading.blocking import (
    LASTS_S,
    LOOK_INTERVAL_S,
    OpenTransactions,
    Reading,
    readings,
    stops,
)
from waybill_spark.tracking.fencing import StageInput

TOPIC, ID = "orders.in", "T1"


@dataclass
class Broker:
    """One topic; its stable ends lie where the first open transaction begins."""

    stable: dict[int, int]
    high: dict[int, int]
    topic_id: str = ID
    away: bool = False
    asked_ends: int = 0
    now_s: float = 100.0
    partitions: tuple[int, ...] = field(default=(0,))

    def identify(self, topics: Iterable[str]) -> Mapping[str, TopicIdentity]:
        if self.away:
            raise Retryable("the broker is away")
        identity = TopicIdentity(name=TOPIC, topic_id=self.topic_id, partitions=self.partitions)
        return {name: identity for name in topics if name == TOPIC}

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]:
        return {p: self.stable[p] for p in partitions}

    def ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]:
        self.asked_ends += 1
        return {p: self.high[p] for p in partitions}

    def clock(self) -> float:
        return self.now_s


def make_reading(frontier: Mapping[int, int], *, stage: str = "load") -> Reading:
    return Reading(stage=stage, topic=TOPIC, topic_id=ID, frontier=frontier)


def looks(
    broker: Broker, open_transactions: OpenTransactions, *frontiers: int
) -> list[Obstacle | None]:
    """One look per frontier of partition 0, each a look's interval after the one before."""
    answers = []
    for frontier in frontiers:
        answers.append(open_transactions.look([make_reading({0: frontier})]))
        broker.now_s += LOOK_INTERVAL_S
    return answers


ENOUGH = 2 + int(LASTS_S / LOOK_INTERVAL_S)  # one look to know the frontier, then the time it takes


def test_a_stage_that_stands_at_an_open_transaction_is_blocked_once_that_lasts() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *[5] * ENOUGH)

    assert answers == [None] * (ENOUGH - 1) + [Obstacle.BLOCKED_BY_OPEN_TRANSACTION]


def test_a_stage_with_nothing_left_to_read_is_not_blocked() -> None:
    broker = Broker(stable={0: 9}, high={0: 9})

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *[9] * 10)

    assert set(answers) == {None}


def test_a_stage_that_has_committed_records_before_it_is_not_blocked() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *[4] * 10)

    assert set(answers) == {None}
    assert broker.asked_ends == 0


def test_a_stage_that_moves_is_neither_blocked_nor_asked_about() -> None:
    broker = Broker(stable={0: 0}, high={0: 99})

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *range(10))

    assert set(answers) == {None}
    assert broker.asked_ends == 0


def test_short_transactions_one_after_the_other_do_not_block() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})
    open_transactions = OpenTransactions(broker, now_s=broker.clock)
    answers = []

    for end in range(5, 15):
        broker.stable, broker.high = {0: end}, {0: end + 1}
        answers += looks(broker, open_transactions, 20)

    assert set(answers) == {None}


def test_when_the_transaction_ends_so_does_the_blocking() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})
    open_transactions = OpenTransactions(broker, now_s=broker.clock)
    assert looks(broker, open_transactions, *[5] * ENOUGH)[-1] is not None

    broker.stable = {0: 9}

    assert looks(broker, open_transactions, 5, 9, 9) == [None] * 3


def test_a_partition_that_was_added_behind_the_stages_back_counts_too() -> None:
    broker = Broker(stable={0: 9, 1: 0}, high={0: 9, 1: 3}, partitions=(0, 1))

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *[9] * ENOUGH)

    assert answers[-1] == Obstacle.BLOCKED_BY_OPEN_TRANSACTION


def test_a_topic_with_another_id_blocks_nobody() -> None:
    broker = Broker(stable={0: 5}, high={0: 9}, topic_id="T2")

    answers = looks(broker, OpenTransactions(broker, now_s=broker.clock), *[5] * 10)

    assert set(answers) == {None}


def test_while_kafka_is_away_the_last_answer_stands() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})
    open_transactions = OpenTransactions(broker, now_s=broker.clock)
    assert looks(broker, open_transactions, *[5] * ENOUGH)[-1] is not None

    broker.away = True

    assert looks(broker, open_transactions, 5, 5) == [Obstacle.BLOCKED_BY_OPEN_TRANSACTION] * 2


def test_however_often_it_is_called_it_looks_once_per_interval() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})
    open_transactions = OpenTransactions(broker, now_s=broker.clock)
    looks(broker, open_transactions, 5, 5)
    asked = broker.asked_ends

    for _ in range(10):
        open_transactions.look([make_reading({0: 5})])

    assert broker.asked_ends == asked + 1


def test_one_blocked_stage_among_several_is_enough() -> None:
    broker = Broker(stable={0: 5}, high={0: 9})
    open_transactions = OpenTransactions(broker, now_s=broker.clock)
    stages = [make_reading({0: 4}, stage="slow"), make_reading({0: 5}, stage="quick")]
    answer = None

    for _ in range(ENOUGH):
        answer = open_transactions.look(stages)
        broker.now_s += LOOK_INTERVAL_S

    assert answer == Obstacle.BLOCKED_BY_OPEN_TRANSACTION


@pytest.mark.parametrize(
    ("held", "frontier"),
    [
        pytest.param([{(ID, 0): 7}], {0: 7}, id="one sink"),
        pytest.param([{(ID, 0): 7}, {(ID, 0): 4}], {0: 4}, id="the slower of two sinks"),
        pytest.param([{(ID, 0): 7}, {}], {0: 0}, id="a sink that holds nothing yet"),
        pytest.param([{(ID, 0): 7, ("old", 0): 3}], {0: 7}, id="an id of the past beside it"),
    ],
)
def test_a_reading_is_how_far_all_sinks_of_a_stage_have_come(
    held: list[dict[tuple[str, int], int]], frontier: dict[int, int]
) -> None:
    source = StageInput(name="orders", topic=TOPIC, topic_id=ID, bases={0: 0})

    (reading,) = readings("load", [source], held)

    assert reading == make_reading(frontier)


def test_a_stop_is_where_the_readable_ends_before_the_written() -> None:
    frontier, stable = {0: 5, 1: 5, 2: 4}, {0: 5, 1: 5, 2: 5}

    assert stops(frontier, stable, ends={0: 9, 1: 5, 2: 9}) == {0: 5}


def test_records_wait_where_nothing_moves_and_all_of_them_may_be_read() -> None:
    broker = Broker(stable={0: 9}, high={0: 9})
    transactions = OpenTransactions(broker, now_s=broker.clock)
    looks(broker, transactions, 5, 5, 5)
    assert transactions.backlogs.now()["load"] == (2_000, False)
    broker.stable[0] = broker.high[0] = 12
    looks(broker, transactions, 5)
    assert transactions.backlogs.now()["load"] == (3_000, True)
    looks(broker, transactions, 9)
    assert transactions.backlogs.now() == {}
