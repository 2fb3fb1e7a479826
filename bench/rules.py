"""R25 and R26: what rules cost a stage of whose records all keep them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.contest import Contest, Turns
from bench.latency import Courier, warm_up
from bench.pipelines import Waybill, running, services
from bench.surroundings import Surroundings
from bench.throughput import RECORDS, Flood

RULES = """
{name: positive, expect: amount > 0, onViolation: drop},
{name: known, expect: length(customer) BETWEEN 1 AND 100},
{name: small, expect: amount < 1000 AND order_id >= 0, onViolation: warn}
""".replace("\n", " ")


@contextmanager
def floods(around: Surroundings) -> Iterator[Turns]:
    with services(around) as urls, ExitStack() as stack:
        ours, theirs = (Flood(around, each.way, stack) for each in with_and_without(urls))
        yield Turns(ours=ours.rate, theirs=theirs.rate)


@contextmanager
def couriers(around: Surroundings) -> Iterator[Turns]:
    with services(around) as urls, ExitStack() as stack:
        ours, theirs = (Courier(around, each.way, stack) for each in with_and_without(urls))
        warm_up(ours, theirs)
        yield Turns(ours=ours.until_visible, theirs=theirs.until_visible)


def with_and_without(urls: dict[str, str]) -> tuple[Waybill, Waybill]:
    return running(urls, rules=RULES), running(urls)


R25 = Contest(
    key="R25",
    what=f"{RECORDS:,} records poured in, all of them fit",
    ours="three rules look at each",
    theirs="no rules",
    unit="/s",
    target=0.95,
    begin=floods,
)
R26 = Contest(
    key="R26",
    what="one record, Kafka to Kafka, until its row is visible, p50",
    ours="three rules look at it",
    theirs="no rules",
    unit="s",
    target=1.05,
    begin=couriers,
)
