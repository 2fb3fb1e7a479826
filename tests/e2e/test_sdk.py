"""The SDK on the real stack: tracked producers, merged and long tokens, the asynchronous client."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, Pipeline, order
from e2e.reading import rows_of
from waybill import AsyncClient, Client, Invalid, NotFound, Position, Span
from waybill.questions import PATH_TOKEN_CHARACTERS_MAX
from waybill_local.stack import StackState
from waybill_shared.kafka.clients import make_producer

WAIT_S = 120.0
DELIVERY_S = 10.0
DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
Produce = Callable[[str, dict[str, object]], Position]


@pytest.fixture
def producer(stack: StackState) -> Iterator[Producer]:
    made = make_producer(stack.kafka)
    yield made
    made.flush(DELIVERY_S)


def payload(number: int) -> bytes:
    return json.dumps(order(number)).encode()


def numbers_at(catalog: SqlCatalog, pipeline: Pipeline, snapshot_id: int) -> list[int]:
    rows = rows_of(catalog, pipeline.table, snapshot_id).to_pylist()
    return [row["order_id"] for row in rows]


def test_a_tracked_producers_token_covers_exactly_what_it_delivered(
    client: Client, orders: Pipeline, catalog: SqlCatalog, producer: Producer, produce: Produce
) -> None:
    mine = range(20_000, 20_050)
    with client.track(producer, pipeline=orders.name) as tracked:
        for number in mine:
            tracked.produce(orders.topic, payload(number), key=str(number))
        produce(orders.topic, order(29_999))  # somebody else, in between
        token = tracked.token(timeout_s=DELIVERY_S)

    outcome = token.wait(timeout_s=WAIT_S)

    assert (outcome.kind, outcome.accepted) == ("complete", len(mine))
    seen = numbers_at(catalog, orders, outcome.iceberg_snapshots["lake"])
    assert [seen.count(number) for number in mine] == [1] * len(mine)


def test_a_producer_of_another_kafka_gets_no_token(client: Client, orders: Pipeline) -> None:
    """Its offsets are there in ours too, but they are other records."""
    client.send(orders.name, "orders", [order(number) for number in range(20_100, 20_140)])
    other = Producer({"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "log_level": 0})
    with client.track(other, pipeline=orders.name) as tracked:
        tracked.produce(orders.topic, payload(1), partition=0)
        with pytest.raises(Invalid, match=r"of Kafka cluster mockCluster"):
            tracked.token(timeout_s=DELIVERY_S)


def test_a_transactions_token_waits_for_its_end(
    client: Client, orders: Pipeline, stack: StackState
) -> None:
    producer = make_producer(stack.kafka, **{"transactional.id": f"{orders.name}-sdk"})
    producer.init_transactions(DELIVERY_S)
    with client.track(producer, pipeline=orders.name) as tracked:
        producer.begin_transaction()
        tracked.produce(orders.topic, payload(20_200), key="a")
        early = tracked.token(timeout_s=DELIVERY_S)
        assert not early.outcome().final
        producer.commit_transaction(DELIVERY_S)
        assert early.wait(timeout_s=WAIT_S).complete
        assert tracked.token(timeout_s=DELIVERY_S).wait(timeout_s=WAIT_S).complete


def test_many_async_sends_become_one_token(
    stack: StackState, orders: Pipeline, catalog: SqlCatalog
) -> None:
    numbers = range(21_000, 21_100)

    async def run() -> tuple[int | None, int]:
        async with AsyncClient(stack.url) as client:
            sends = [client.send(orders.name, "orders", [order(number)]) for number in numbers]
            receipts = await asyncio.gather(*sends)
            merged = await client.merge(receipts)
            outcome = await merged.wait(timeout_s=WAIT_S)
            followed = [each.kind async for each in merged.follow(timeout_s=WAIT_S)]
            assert (outcome.kind, followed[-1]) == ("complete", "complete")
            return outcome.accepted, outcome.iceberg_snapshots["lake"]

    accepted, snapshot_id = asyncio.run(run())

    assert accepted == len(numbers)
    seen = numbers_at(catalog, orders, snapshot_id)
    assert [seen.count(number) for number in numbers] == [1] * len(numbers)


def test_ten_thousand_tokens_become_one(client: Client, orders: Pipeline) -> None:
    tokens = [client.send(orders.name, "orders", [order(22_000 + n)]).token for n in range(100)]

    merged = client.merge(tokens * 100)

    assert merged.wait(timeout_s=WAIT_S).accepted == len(tokens)
    with pytest.raises(NotFound) as refused:
        client.merge([*tokens, tokens[0][:-2], *tokens])
    assert [row.index for row in refused.value.rejected] == [len(tokens)]


def test_a_token_of_many_gaps_is_too_long_for_an_address_and_still_answered(
    client: Client, orders: Pipeline, producer: Producer
) -> None:
    reports: list[int] = []
    for number in range(2_400):
        producer.produce(
            orders.topic, payload(23_000 + number), partition=0,
            on_delivery=lambda error, message: reports.append(message.offset() or 0),
        )  # fmt: skip
    assert producer.flush(DELIVERY_S) == 0
    topic_id = next(
        source.topic_id for source in client.pipeline(orders.name).inputs if source.topic_id
    )
    spans = [
        Span(topic=orders.topic, topic_id=topic_id, partition=0, start=offset, end=offset + 1)
        for offset in sorted(reports)[::2]
    ]

    token = client.token_for(orders.name, positions=spans).token

    assert len(token) > PATH_TOKEN_CHARACTERS_MAX
    outcomes = list(token.follow(timeout_s=WAIT_S))
    assert (outcomes[-1].kind, outcomes[-1].accepted) == ("complete", 1_200)
    assert token.wait(timeout_s=WAIT_S).complete
    with pytest.raises(NotFound):
        client.outcome(token[:-4])


def test_a_token_of_two_pipelines_waits_for_both(
    client: Client, orders: Pipeline, apply_orders: Apply
) -> None:
    other = apply_orders()
    first = client.send(orders.name, "orders", [order(25_000)]).token
    both = first.merge(client.send(other.name, "orders", [order(25_001)]))

    outcome = both.wait(timeout_s=WAIT_S)

    assert (outcome.kind, outcome.pipeline, outcome.accepted) == ("complete", None, 2)
    assert {part.pipeline for part in outcome.parts} == {orders.name, other.name}
    assert set(outcome.iceberg_snapshots) == {f"{orders.name}.lake", f"{other.name}.lake"}

    late = client.send(other.name, "orders", [order(25_002)]).token
    client.operation(client.stop(other.name).id, wait_s=WAIT_S)
    later = client.send(other.name, "orders", [order(25_003)]).token
    waiting = client.merge([first, late, later]).outcome()
    assert waiting.kind == "in_progress"
    assert {part.pipeline: part.kind for part in waiting.parts}[orders.name] == "complete"

    client.operation(client.delete(other.name).id, wait_s=WAIT_S)
    assert client.merge([first, later]).wait(timeout_s=WAIT_S).kind == "lost"
    assert first.outcome().complete


def test_the_page_about_the_sdk_runs_as_it_stands(
    stack: StackState, orders: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_URL", stack.url)
    monkeypatch.setenv("WAYBILL_KAFKA", stack.kafka)

    names = run_page(
        DOCS / "sdk.md",
        ('("orders", "orders"', f'("{orders.name}", "orders"'),
        ('pipeline="orders"', f'pipeline="{orders.name}"'),
        ('"orders.in"', f'"{orders.topic}"'),
        ('offsets("orders")', f'offsets("{orders.name}")'),
        ('history("orders"', f'history("{orders.name}"'),
        ('runs("orders"', f'runs("{orders.name}"'),
        ('batches("orders"', f'batches("{orders.name}"'),
    )

    assert str(names["stored"]).startswith("wb1.")
    assert getattr(names["outcome"], "complete", False)
    assert getattr(names["offsets"], "unknown", None) == ()


def test_the_page_about_kafka_runs_as_it_stands(
    stack: StackState,
    orders: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WAYBILL_URL", stack.url)
    monkeypatch.setenv("WAYBILL_KAFKA", stack.kafka)

    names = run_page(
        DOCS / "kafka.md",
        ('token_for("orders"', f'token_for("{orders.name}"'),
        ('"orders.in"', f'"{orders.topic}"'),
        ("Path().resolve()", f'Path("{stack.folder}")'),
        ("/.waybill/lakehouse", "/lakehouse"),
        ('"raw.orders"', f'"{orders.table}"'),
    )

    assert capsys.readouterr().out == "complete\n"
    rows = names["rows"]
    assert isinstance(rows, pa.Table)
    assert 7 in rows["order_id"].to_pylist()


def run_page(page: Path, *names_here: tuple[str, str]) -> dict[str, object]:
    """What the examples of a page leave behind, run with the names of this stack."""
    text = page.read_text(encoding="utf-8")
    for written, here in names_here:
        assert written in text
        text = text.replace(written, here)
    names: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.findall(text):
        exec(compile(block, str(page), "exec"), names)
    return names
