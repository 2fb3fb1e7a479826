"""Asks most brokers where partitions start and end, for decisions that are never corrected.

A broker that has lost the others still believes that it leads. It may answer with the end of a
partition that another broker leads by now, or with the start of a topic that is deleted.

A client keeps to the leaders that the first broker named, so here one client for each broker asks.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin, make_admin

ASKED_AGAIN: Final = 9
"""How often a question that any broker answers is repeated. That all ten go to the one of three
that lags happens once in 59,000."""
AT_ONCE: Final = 16  # brokers that are asked at the same time
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer(Generic[K]):
    client: KafkaAdmin
    offsets: Mapping[K, int]


def lowest(admin: KafkaAdmin, read: Callable[[KafkaAdmin], Mapping[K, int]]) -> dict[K, int]:
    """Return what `read` returns, with the least value of all clients for each key."""
    told = [answer.offsets for answer in _by_most(admin, read)]
    return {key: min(offsets[key] for offsets in told) for key in told[0]}


def highest_ends(
    admin: KafkaAdmin, topic: str, partitions: Iterable[int]
) -> tuple[dict[int, int], KafkaAdmin]:
    """Return the offset after the last record of each partition, and the client that can read that
    far in most of them.
    """
    wanted = tuple(partitions)
    told = _by_most(admin, lambda client: client.ends(topic, wanted))
    ends = {at: max(answer.offsets[at] for answer in told) for at in wanted}

    def known(answer: _Answer[int]) -> int:
        return sum(answer.offsets[at] == end for at, end in ends.items())

    return ends, max(told, key=known).client


def _by_most(admin: KafkaAdmin, read: Callable[[KafkaAdmin], Mapping[K, int]]) -> list[_Answer[K]]:
    """Return the first answers, from more than half of the brokers.

    Raise Retryable. Half of them or fewer may be those that were cut off, and they may answer
    first.
    """
    brokers = admin.brokers()
    if len(brokers) <= 1:
        return [_Answer(client=admin, offsets=read(admin))]
    asked = random.sample(brokers, len(brokers))

    def ask(broker: str) -> _Answer[K]:
        client = make_admin(replace(admin.cluster, bootstrap=broker))
        return _Answer(client=client, offsets=read(client))

    pool = ThreadPoolExecutor(min(len(asked), AT_ONCE))
    questions = [pool.submit(ask, broker) for broker in asked]
    answers: list[_Answer[K]] = []
    faults: list[Retryable] = []
    try:
        for question in as_completed(questions):
            try:
                answers.append(question.result())
            except Retryable as error:
                faults.append(error)
            if 2 * len(answers) > len(asked):
                return answers
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a broker that is dead is not waited for
    raise Retryable(f"{len(answers)} of {len(asked)} brokers answer: {faults[-1]}")
