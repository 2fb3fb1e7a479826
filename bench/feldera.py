"""R21: Feldera's own client, from its push until its wait returns, and by ours."""

import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from feldera import FelderaClient, Pipeline

from bench.contest import Contest, Turns
from bench.pipelines import running, services
from bench.surroundings import Surroundings, await_ready, child
from waybill import Client
from waybill_local.ports import HOST, pick

RECORDS = 30  # in each turn
WARM_UP_S = 60.0
PAUSE_S_MAX = 0.2  # so that records come at any moment of whatever somebody does regularly
TIMEOUT_S = 60.0
SEED = 1


@contextmanager
def gateway(around: Surroundings, urls: dict[str, str]) -> Iterator[str]:
    """One address for all services, as clients have it."""
    port = pick({"gateway": 0})["gateway"]
    ports = {name: str(urlsplit(url).port) for name, url in urls.items()} | {"gateway": str(port)}
    named = {f"WAYBILL_{name.upper()}_PORT": number for name, number in ports.items()}
    command = [sys.executable, "-m", "waybill_local.gateway"]
    with (
        (around.folder / "gateway.log").open("ab") as log,
        child(command, {**around.environment, **named}, stdout=log, stderr=log),
    ):
        url = f"http://{HOST}:{port}"
        await_ready(url)
        yield url


@contextmanager
def stock_against_own(around: Surroundings) -> Iterator[Turns]:
    with services(around) as urls, gateway(around, urls) as url, Client(url) as client:
        name, numbers = running(urls).name, itertools.count()
        stock = Pipeline.get(name, FelderaClient(url))
        dice = random.Random(SEED)

        def row() -> dict[str, object]:
            return {"order_id": next(numbers), "customer": "ada", "amount": 12.5}

        def theirs() -> None:
            token = stock.input_json("orders", row(), update_format="raw", wait=False)
            stock.wait_for_token(token)

        def ours() -> None:
            outcome = client.send(name, "orders", [row()]).token.wait(TIMEOUT_S)
            assert outcome.kind == "complete", outcome

        def median(one: Callable[[], None]) -> float:
            times = []
            for _ in range(RECORDS):
                time.sleep(dice.uniform(0, PAUSE_S_MAX))
                began = time.perf_counter()
                one()
                times.append(time.perf_counter() - began)
            return statistics.median(times)

        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            theirs()
            ours()
        yield Turns(ours=lambda: median(theirs), theirs=lambda: median(ours))


R21 = Contest(
    key="R21",
    what="one record pushed over HTTP, p50",
    ours="Feldera's client, until `wait_for_token` returns",
    theirs="our SDK, `send` and `wait`",
    unit="s",
    target=1.5,
    begin=stock_against_own,
)
