"""A tracked producer: its token covers what was delivered, or there is none. The producers are
real; they write to the brokers that librdkafka simulates, or to nobody."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from confluent_kafka import KafkaError, Message, Producer

from waybill import (
    AsyncClient,
    Client,
    Invalid,
    KafkaAway,
    NotDelivered,
    NotFound,
    StillUndelivered,
    WaybillError,
)
from waybill.models import Span
from waybill.sync.tracked import Tracked
from waybill.testing import Response, ScriptedServer, problem
from waybill.tracking import SPANS_MAX, Deliveries

TOPIC, TOPIC_ID = "orders.in", "b2xkb2xkb2xkb2xkb2xkbw"
PIPELINE = {
    "name": "orders",
    "phase": "Running",
    "inputs": [{"name": "orders", "topic": TOPIC, "topic_id": TOPIC_ID, "bases": {"0": 0}}],
}
Track = Callable[..., AbstractContextManager[Tracked]]


def simulated(**options: object) -> Producer:
    quiet = {"log_level": 0, "test.mock.num.brokers": 1, "linger.ms": 0}
    return Producer({"bootstrap.servers": "simulated", **quiet, **options})


@pytest.fixture
def producer() -> Iterator[Producer]:
    made = simulated()
    yield made
    made.flush(5)


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    server.answer("GET", "/v1/pipelines/orders", Response(json=PIPELINE))
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.abc", "pipeline": "orders"}))
    with Client(server.url) as opened:
        yield opened


def positions(server: ScriptedServer) -> list[dict[str, object]]:
    (request,) = server.asked("POST", "/v1/tokens")
    found: list[dict[str, object]] = json.loads(request.body)["positions"]
    return found


def test_the_token_covers_what_was_delivered(
    server: ScriptedServer, client: Client, producer: Producer
) -> None:
    with client.track(producer, pipeline="orders") as tracked:
        for number in range(3):
            tracked.produce(TOPIC, f"{number}".encode(), key="ada", partition=0)
        tracked.produce(TOPIC, b"x", partition=1, headers={"a": b"b"}, timestamp=5)
        token = tracked.token(timeout_s=10)
    assert token == "wb1.abc"
    place = {"topic": TOPIC, "topic_id": TOPIC_ID}
    assert positions(server) == [
        {**place, "partition": 0, "start": 0, "end": 3},
        {**place, "partition": 1, "start": 0, "end": 1},
    ]
    body = json.loads(server.asked("POST", "/v1/tokens")[0].body)
    assert body["cluster_id"] == producer.list_topics(timeout=5).cluster_id


def test_what_others_produce_is_not_covered(
    server: ScriptedServer, client: Client, producer: Producer
) -> None:
    with client.track(producer, pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"mine", partition=0)
        producer.flush(5)
        producer.produce(TOPIC, b"not mine", partition=0)
        producer.flush(5)
        tracked.produce(TOPIC, b"mine", partition=0)
    tracked.token(timeout_s=10)
    assert [(each["start"], each["end"]) for each in positions(server)] == [(0, 1), (2, 3)]


def test_own_callbacks_still_run(client: Client, producer: Producer) -> None:
    told: list[tuple[str, int | None]] = []

    def named(name: str) -> Callable[[KafkaError | None, Message], None]:
        return lambda error, message: told.append((name, message.offset()))

    with client.track(producer, pipeline="orders", on_delivery=named("all")) as tracked:
        tracked.produce(TOPIC, b"x", partition=0)
        tracked.token(timeout_s=10)
        tracked.produce(TOPIC, b"x", partition=0, on_delivery=named("one"))
        tracked.token(timeout_s=10)
    assert told == [("all", 0), ("one", 1)]


def test_a_callback_that_raises_takes_nothing_from_the_token(
    server: ScriptedServer, client: Client, producer: Producer
) -> None:
    def fail(error: KafkaError | None, message: Message) -> None:
        raise LookupError("mine")

    with client.track(producer, pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"x", partition=0, on_delivery=fail)
        with pytest.raises(LookupError):
            tracked.token(timeout_s=10)
        tracked.token(timeout_s=10)
    assert len(positions(server)) == 1


def test_a_record_that_was_not_delivered_gives_no_token(
    server: ScriptedServer, client: Client
) -> None:
    producer = simulated(**{"linger.ms": 60_000})  # what is not flushed is still here to be purged
    with client.track(producer, pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"x", partition=0)
        producer.flush(5)
        tracked.produce(TOPIC, b"purged", key="ada", partition=0)
        producer.purge()
        with pytest.raises(
            NotDelivered, match=r"with key b'ada': .*[Pp]urged.*`take_failed`"
        ) as no:
            tracked.token(timeout_s=10)
        (failed,) = no.value.failed
        assert (failed.topic, failed.key, failed.value) == (TOPIC, b"ada", b"purged")
        with pytest.raises(NotDelivered):
            tracked.token(timeout_s=10)
        assert server.asked("POST", "/v1/tokens") == []
        assert tracked.take_failed() == (failed,)
        tracked.token(timeout_s=10)
    assert [(each["start"], each["end"]) for each in positions(server)] == [(0, 1)]


def test_an_acknowledgement_without_an_offset_gives_no_token(
    server: ScriptedServer, client: Client
) -> None:
    with client.track(simulated(acks=0), pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"x", partition=0)
        with pytest.raises(NotDelivered, match="without an offset, as with acks=0"):
            tracked.token(timeout_s=10)
    assert server.asked("POST", "/v1/tokens") == []


def test_what_is_not_acknowledged_in_time_gives_no_token(
    client: Client, producer: Producer
) -> None:
    slow = simulated(**{"linger.ms": 60_000, "message.timeout.ms": 120_000})
    with client.track(slow, pipeline="orders") as tracked:
        tracked._deliveries.announce(1)  # as if another thread had its report in hand
        with pytest.raises(StillUndelivered, match="1 of the tracked records") as late:
            tracked.token(timeout_s=0.01)
    assert late.value.outstanding == 1


def test_a_record_that_the_producer_refuses_is_not_awaited(client: Client) -> None:
    tiny = simulated(**{"message.max.bytes": 1_000})
    with client.track(tiny, pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"x", partition=0)
        with pytest.raises(Exception, match="MSG_SIZE_TOO_LARGE"):
            tracked.produce(TOPIC, b"x" * 10_000, partition=0)
        assert tracked.token(timeout_s=10) == "wb1.abc"


def test_another_topic_is_refused_before_it_is_produced(client: Client, producer: Producer) -> None:
    with (
        client.track(producer, pipeline="orders") as tracked,
        pytest.raises(ValueError, match=r"no input of pipeline orders reads topic audit"),
    ):
        tracked.produce("audit", b"x")
    assert len(producer) == 0


def test_a_block_has_its_limits(client: Client, producer: Producer) -> None:
    with (
        client.track(producer, pipeline="orders") as tracked,
        pytest.raises(ValueError, match="nothing was produced"),
    ):
        tracked.token()
    with pytest.raises(RuntimeError, match="is over"):
        tracked.produce(TOPIC, b"x")


def test_what_waybill_refuses_is_told(server: ScriptedServer, producer: Producer) -> None:
    server.answer("GET", "/v1/pipelines/orders", Response(json=PIPELINE))
    server.answer("POST", "/v1/tokens", problem(400, "the positions are of Kafka cluster x"))
    with Client(server.url) as client, client.track(producer, pipeline="orders") as tracked:
        tracked.produce(TOPIC, b"x", partition=0)
        with pytest.raises(Invalid, match="of Kafka cluster x"):
            tracked.token(timeout_s=10)


def test_more_runs_than_one_request_holds_are_merged(
    server: ScriptedServer, client: Client, producer: Producer
) -> None:
    with client.track(producer, pipeline="orders") as tracked:
        runs = [(at, at + 1) for at in range(0, 2 * SPANS_MAX + 2, 2)]
        tracked._deliveries._runs[TOPIC, 0] = runs
        assert tracked.token(timeout_s=5) == "wb1.abc"
    *made, merged = [json.loads(r.body) for r in server.asked("POST", "/v1/tokens")]
    assert [len(body["positions"]) for body in made] == [SPANS_MAX, 1]
    assert merged == {"merge": ["wb1.abc", "wb1.abc"]}


def test_reports_in_any_order_make_the_same_spans() -> None:
    deliveries = Deliveries()
    deliveries._runs["t", 0] = [(4, 6), (0, 2), (1, 3), (5, 9)]
    (first, second) = deliveries.spans({"t": "id"})
    assert (first.start, first.end, second.start, second.end) == (0, 3, 4, 9)
    assert isinstance(first, Span)


def test_a_pipeline_that_is_not_there_is_told(
    server: ScriptedServer, client: Client, producer: Producer
) -> None:
    with pytest.raises(NotFound), client.track(producer, pipeline="other"):
        pass
    server.answer("GET", "/v1/pipelines/new", Response(json={"name": "new", "phase": "Created"}))
    with (
        pytest.raises(WaybillError, match=r"new is Created and reads no topic yet"),
        client.track(producer, pipeline="new"),
    ):
        pass


def test_a_kafka_that_does_not_answer_is_told(client: Client) -> None:
    nobody = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with (
        pytest.raises(KafkaAway, match=r"did not answer within 0\.1 s"),
        client.track(nobody, pipeline="orders", timeout_s=0.1),
    ):
        pass


def test_the_extra_is_named_where_it_is_missing(
    client: Client, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with (
        pytest.raises(WaybillError, match=r"pip install 'waybill-client\[kafka\]'"),
        client.track(producer, pipeline="orders"),
    ):
        pass


def test_what_is_no_producer_is_refused(client: Client) -> None:
    with (
        pytest.raises(TypeError, match=r"takes a confluent_kafka\.Producer, not a builtins\.str"),
        client.track("producer", pipeline="orders"),  # type: ignore[arg-type]
    ):
        pass


def test_tracking_is_awaited(server: ScriptedServer, producer: Producer) -> None:
    server.answer("GET", "/v1/pipelines/orders", Response(json=PIPELINE))
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.abc", "pipeline": "orders"}))
    server.answer("GET", "/v1/tokens/wb1.abc", Response(json={"outcome": "complete"}))

    async def run() -> None:
        async with AsyncClient(server.url) as client:
            async with client.track(producer, pipeline="orders") as tracked:
                tracked.produce(TOPIC, b"x", partition=0)
                token = await tracked.token(timeout_s=10)
            assert (await token.wait(timeout_s=5)).complete

    asyncio.run(run())
    assert [(each["start"], each["end"]) for each in positions(server)] == [(0, 1)]
