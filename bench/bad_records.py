"""R49: how long one batch takes in which one record of ten ends the query with an error."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from confluent_kafka import Consumer, Producer

from bench.contest import Contest, Turns
from bench.latency import reader
from bench.pipelines import running, services
from bench.surroundings import Surroundings
from waybill_shared.kafka.clients import claim_transactions

RECORDS = 400
BAD_EVERY = 10
QUERY = "SELECT *, amount / order_id AS share FROM orders"  # ends with an error where order_id is 0
TIMEOUT_S = 120.0


def seconds(producer: Producer, source: str, rows: Consumer, bad_every: int) -> float:
    """Measure from the commit of the records, all in one partition, until the last row is visible.

    They are in one transaction, so that one batch reads them.
    """
    producer.begin_transaction()
    for number in range(RECORDS):
        is_bad = bad_every and number % bad_every == 0
        record = {"order_id": 0 if is_bad else number + 1, "customer": "ada", "amount": 12.5}
        producer.produce(source, value=json.dumps(record), partition=0)
    producer.commit_transaction()
    began = time.perf_counter()
    left = RECORDS - (RECORDS // bad_every if bad_every else 0)
    while left > 0:
        left -= len(rows.consume(left, timeout=0.01))
        if time.perf_counter() - began > TIMEOUT_S:
            raise TimeoutError(f"{left} rows did not come out in {TIMEOUT_S} s")
    return time.perf_counter() - began


@contextmanager
def bad_against_clean(around: Surroundings) -> Iterator[Turns]:
    with services(around) as urls:
        pipeline = running(urls, query=QUERY, more="deadLetter: {budget: 10000 per 1 second}\n")
        source, target = pipeline.way.source, pipeline.way.target
        options = {"bootstrap.servers": around.kafka, "transactional.id": pipeline.name}
        producer = Producer(options)
        claim_transactions(producer, TIMEOUT_S)
        with closing(reader(around.kafka, target)) as rows:
            turn = partial(seconds, producer, source, rows)
            yield Turns(ours=partial(turn, BAD_EVERY), theirs=partial(turn, 0))


R49 = Contest(
    key="R49",
    what=f"one batch of {RECORDS} records, from their commit until the last row is visible",
    ours=f"one of {BAD_EVERY} ends the query with an error",
    theirs="all of them pass",
    unit="s",
    target=30.0,
    begin=bad_against_clean,
)
