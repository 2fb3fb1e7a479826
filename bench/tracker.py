"""R10: commits that the tracker brings into Redis, over raw pipelined writes of the same fields."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import redis

from bench.contest import Contest, Turns
from bench.facts import INPUT_PARTITIONS, Facts
from bench.http import Http
from bench.surroundings import Surroundings
from bench.waking import running

COMMITS = 10_000
PIPELINES = 8
PIPELINED = 500  # commands in one flight, as many as the tracker takes facts at once
TIMEOUT_S = 120.0


@contextmanager
def applied_against_hset(around: Surroundings) -> Iterator[Turns]:
    with ExitStack() as stack:
        status = stack.enter_context(closing(Http(running(around, stack))))
        pipelines = [Facts(around) for _ in range(PIPELINES)]
        for pipeline in pipelines:
            pipeline.begin()
        client = stack.enter_context(redis.Redis.from_url(around.redis))
        yield Turns(ours=lambda: applied(status, pipelines), theirs=lambda: written(client))


def applied(status: Http, pipelines: list[Facts]) -> float:
    """Commits per second, from the first one's produce until the last one is known."""
    share = COMMITS // len(pipelines)
    ready = [(pipeline, pipeline.encoded(share)) for pipeline in pipelines]
    tokens = [pipeline.token(pipeline.commits) for pipeline in pipelines]
    began = time.perf_counter()
    for messages in zip(*(values for _, values in ready), strict=True):
        for (pipeline, _), message in zip(ready, messages, strict=True):
            pipeline.produce(message)
    for pipeline in pipelines:
        pipeline.flush()
    deadline = began + TIMEOUT_S
    for token in tokens:
        outcome = None
        while outcome != "complete":
            assert time.perf_counter() < deadline, f"not applied in {TIMEOUT_S} s: {outcome}"
            told = status.ask("GET", f"/v1/tokens/{token}?wait=30")
            assert isinstance(told, dict)
            outcome = told["outcome"]
    return COMMITS / (time.perf_counter() - began)


def written(client: "redis.Redis") -> float:
    """Commits per second whose ends of each partition are set in a hash."""
    began = time.perf_counter()
    for first in range(0, COMMITS, PIPELINED):
        flight = client.pipeline(transaction=False)
        for number in range(first, first + PIPELINED):
            ends: list[str | int] = []
            for partition in range(INPUT_PARTITIONS):
                ends += [f"orders.in[{partition}]", number]
            flight.hset(f"bench:{number % PIPELINES}", items=ends)
        flight.execute()
    return COMMITS / (time.perf_counter() - began)


R10 = Contest(
    key="R10",
    what=f"commits of {INPUT_PARTITIONS} partitions",
    ours="from Kafka through the tracker, answered by status",
    theirs="raw pipelined HSET of the same ends",
    unit="/s",
    target=0.5,
    begin=applied_against_hset,
)
