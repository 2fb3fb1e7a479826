"""Where partitions begin and end, as most brokers have it: for what must be right for good.

A broker that has lost the others still leads, as it believes, and answers: where a partition ends
that another one leads by now, or where that of a topic began which is gone. A client keeps to the
leaders that the first broker named, so here one client for each broker asks.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin, make_admin

ASKED_AGAIN: Final = 9
"""Of a question that goes to any broker: all ten answers from the one of three that lags, 1 in
59,000."""
BROKERS_MAX: Final = 5  # of more, so many by chance
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer(Generic[K]):
    client: KafkaAdmin
    offsets: Mapping[K, int]


def lowest(admin: KafkaAdmin, read: Callable[[KafkaAdmin], Mapping[K, int]]) -> dict[K, int]:
    """What `read` gives, with the least that it gives to one of the clients."""
    told = [answer.offsets for answer in _by_most(admin, read)]
    return {key: min(offsets[key] for offsets in told) for key in told[0]}


def highest_ends(
    admin: KafkaAdmin, topic: str, partitions: Iterable[int]
) -> tuple[dict[int, int], KafkaAdmin]:
    """One past the last record written of each partition, and a client that reads up to there."""
    wanted = tuple(partitions)
    told = _by_most(admin, lambda client: client.ends(topic, wanted))
    ends = {at: max(answer.offsets[at] for answer in told) for at in wanted}
    return ends, max(told, key=lambda answer: sum(answer.offsets.values())).client


def _by_most(admin: KafkaAdmin, read: Callable[[KafkaAdmin], Mapping[K, int]]) -> list[_Answer[K]]:
    """The first answers, by way of more than half of the brokers. Raises Retryable."""
    brokers = admin.brokers()
    if len(brokers) <= 1:
        return [_Answer(client=admin, offsets=read(admin))]
    asked = random.sample(brokers, min(len(brokers), BROKERS_MAX))

    def ask(broker: str) -> _Answer[K]:
        client = make_admin(replace(admin.cluster, bootstrap=broker))
        return _Answer(client=client, offsets=read(client))

    pool = ThreadPoolExecutor(len(asked))
    questions = [pool.submit(ask, broker) for broker in asked]
    pool.shutdown(wait=False)  # a broker that is dead is not waited for
    answers: list[_Answer[K]] = []
    faults: list[Retryable] = []
    for question in as_completed(questions):
        try:
            answers.append(question.result())
        except Retryable as error:
            faults.append(error)
        if 2 * len(answers) > len(asked):
            return answers
    raise Retryable(f"{len(answers)} of {len(asked)} brokers answer: {faults[-1]}")
