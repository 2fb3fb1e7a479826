"""R11: what a question costs when many tokens are out, over the same with few."""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from bench.contest import Contest, Turns
from bench.facts import Facts
from bench.http import Http
from bench.surroundings import Surroundings
from bench.waking import running

FEW, MANY = 1_000, 500_000
QUESTIONS = 500
SEED = 11


@contextmanager
def many_against_few(around: Surroundings) -> Iterator[Turns]:
    with ExitStack() as stack:
        status = stack.enter_context(closing(Http(running(around, stack))))
        facts = Facts(around)
        facts.begin()
        facts.commit()
        dice = random.Random(SEED)
        few = [facts.token(1 + number % 2) for number in range(FEW)]
        many = [facts.token(1 + number % 2) for number in range(MANY)]
        yield Turns(
            ours=lambda: asked(status, dice.choices(many, k=QUESTIONS)),
            theirs=lambda: asked(status, dice.choices(few, k=QUESTIONS)),
        )


def asked(status: Http, tokens: list[str]) -> float:
    times = []
    for token in tokens:
        began = time.perf_counter()
        status.ask("GET", f"/v1/tokens/{token}")
        times.append(time.perf_counter() - began)
    return statistics.median(times)


R11 = Contest(
    key="R11",
    what="one question after a token, p50",
    ours=f"{MANY:,} tokens are out",
    theirs=f"{FEW:,} tokens are out",
    unit="s",
    target=1.2,
    begin=many_against_few,
)
