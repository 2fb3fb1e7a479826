"""Load on a pipeline with a sink of every kind, and what its tokens say meanwhile."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from e2e.every_sink import WAIT_S, EverySink
from waybill import Client
from waybill.models import Operation
from waybill_local.stack import StackState

PART: Final = 5  # records of one token
PACE_S: Final = 0.1  # between two requests
NEWEST: Final = 40  # tokens that are asked for; those before have come to their end long ago


@contextmanager
def load(stack: StackState, pipeline: EverySink, tokens: list[str]) -> Iterator[None]:
    """Send orders all the time, and keep their tokens."""
    over = threading.Event()

    def run() -> None:
        with Client(stack.url) as client:
            while not over.wait(PACE_S):
                tokens.append(pipeline.send(PART, client))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def await_done(client: Client, operation: Operation) -> None:
    done = client.operation(operation.id, wait_s=WAIT_S)
    assert done.state == "done", done.errors


def assert_true_now(pipeline: EverySink, tokens: Sequence[str]) -> None:
    """What tokens say to be complete is in each sink for who reads after that."""
    asked = [*enumerate(tokens)][-NEWEST:]
    kinds = {number: pipeline.client.outcome(token).kind for number, token in asked}
    assert set(kinds.values()) <= {"complete", "in_progress"}
    complete = {
        record
        for number, kind in kinds.items()
        if kind == "complete"
        for record in pipeline.sent[PART * number : PART * (number + 1)]
    }
    for sink, found in pipeline.found().items():
        assert complete <= {*found}, f"{sink} lacks {sorted(complete - {*found})}"
