"""Feldera's own Python client, as it is published, against the whole stack."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import pandas as pd
import pytest
from feldera import FelderaClient, Pipeline
from feldera.enums import CompletionTokenStatus, PipelineStatus
from feldera.rest.errors import FelderaAPIError

from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end

WAIT_S = 120.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: price
    kafka: {{topic: {name}.prices, partitions: 2}}
    schema: >-
      part BIGINT NOT NULL, vendor STRING, price DECIMAL(10,2), at TIMESTAMP, day DATE, gone BOOLEAN
    key: part
    deletes: {{column: gone}}
    expectations: [{{name: not_free, expect: price > 0, onViolation: dead_letter}}]
  - name: vendor
    kafka: {{topic: {name}.vendors, partitions: 1}}
    schema: "id BIGINT NOT NULL, name STRING"
stages:
  - name: load
    inputs: [price]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - name: prices
        postgres:
          connection: warehouse
          table: public.{name}_prices
          mode: upsert
          keys: [part]
          deleteWhere: gone
  - name: vendors
    inputs: [vendor]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - name: vendors
        postgres: {{connection: warehouse, table: public.{name}_vendors}}
      - name: vendors_out
        kafka: {{topic: {name}.vendors.out, partitions: 1}}
"""


class Shop:
    """One pipeline, by the hands of Feldera's client."""

    def __init__(self, stack: StackState, name: str) -> None:
        self.name = name
        self.feldera = FelderaClient(stack.url)
        self.pipeline = Pipeline.get(name, self.feldera)
        self.http = httpx2.Client(base_url=f"{stack.url}/v0/pipelines/{name}", timeout=WAIT_S)
        self._stack = stack

    def prices(self) -> dict[int, tuple[Any, ...]]:
        rows = Database.of(self._stack).ask(
            f"SELECT part, vendor, price, at, day FROM public.{self.name}_prices"
        )
        return {row[0]: row[1:] for row in rows}

    def push(self, body: str, **query: str) -> httpx2.Response:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self.http.post("/ingress/PRICE", content=body, params=query, headers=headers)

    def wait(self, token: str) -> None:
        self.feldera.wait_for_token(self.name, token, timeout_s=WAIT_S)


@pytest.fixture(scope="module")
def shop(client: Client, stack: StackState) -> Iterator[Shop]:
    name = f"shop_{uuid.uuid4().hex[:8]}"
    done = client.operation(client.apply(MANIFEST.format(name=name)).id, wait_s=WAIT_S)
    assert done.errors == ()
    client.wait_pipeline(name, timeout_s=WAIT_S)
    yield Shop(stack, name)
    client.delete(name)


def test_a_pipeline_is_seen_as_one_of_feldera(shop: Shop) -> None:
    assert shop.pipeline.status() == PipelineStatus.RUNNING
    assert shop.name in {each.name for each in Pipeline.all(shop.feldera)}
    assert {table.name for table in shop.pipeline.tables()} == {"price", "vendor"}
    assert shop.pipeline.deployment_error() is None
    with pytest.raises(FelderaAPIError) as refused:
        Pipeline.get("nothing", shop.feldera)
    assert refused.value.error_code == "UnknownPipelineName"


@pytest.mark.timeout(600)
def test_what_is_pushed_is_there_when_the_client_has_waited(shop: Shop) -> None:
    for part in range(100, 160):
        row = {"part": part, "vendor": "v", "price": 1.5}
        shop.pipeline.input_json("price", row, update_format="raw", wait=True)
        assert shop.prices()[part][:2] == ("v", Decimal("1.50"))


@pytest.mark.parametrize("posts", [range(3), range(3, 50)], ids=["first", "more"])
def test_each_post_is_in_two_sinks_when_the_client_has_waited(
    shop: Shop, stack: StackState, kafka: KafkaAdmin, posts: range
) -> None:
    """As Feldera's own test of tokens with outputs."""

    def found() -> tuple[list[int], list[int]]:
        rows = Database.of(stack).ask(f"SELECT id FROM public.{shop.name}_vendors ORDER BY id")
        values = read_to_end(kafka.cluster, f"{shop.name}.vendors.out", [0])
        records = [json.loads(message.value() or b"{}") for message in values]
        return [row[0] for row in rows], [record["id"] for record in records]

    before, _ = found()
    for number in posts:
        row = {"id": number, "name": f"v{number}"}
        shop.pipeline.input_json("VENDOR", row, update_format="raw", wait=True)
        there = [*before, *range(posts.start, number + 1)]
        assert found() == (there, there)


def test_inserts_and_deletes_change_the_table(shop: Shop) -> None:
    rows = [{"insert": {"part": part, "price": part}} for part in (1, 2, 3)]
    shop.pipeline.input_json("PRICE", rows, update_format="insert_delete")
    assert {1, 2, 3} <= shop.prices().keys()
    shop.pipeline.input_json("PRICE", {"delete": {"part": 2, "price": 2}}, "insert_delete")
    assert {1, 2, 3} & shop.prices().keys() == {1, 3}


@pytest.mark.filterwarnings("ignore:'epoch' date format is deprecated")  # the client asks for it
def test_a_frame_of_pandas_arrives_as_it_is(shop: Shop) -> None:
    at = pd.Timestamp("2026-11-21T09:00:00.125")
    frame = pd.DataFrame(
        {
            "part": range(1_000, 3_500),
            "vendor": ["ada", None] * 1_250,
            "price": [0.25] * 2_500,
            "at": [at] * 2_500,
            "day": [pd.Timestamp("2026-11-21")] * 2_500,
        }
    )
    assert shop.pipeline.input_pandas("PRICE", frame) is not None
    found = {part: row for part, row in shop.prices().items() if 1_000 <= part < 3_500}
    day = datetime(2026, 11, 21, tzinfo=UTC).date()
    moment = at.to_pydatetime().replace(tzinfo=UTC)
    assert found == {
        part: ("ada" if part % 2 == 0 else None, Decimal("0.25"), moment, day)
        for part in range(1_000, 3_500)
    }


def test_lines_of_csv_are_rows_in_the_order_of_the_columns(shop: Shop) -> None:
    shop.feldera.push_to_pipeline(shop.name, "PRICE", "csv", "7,csv,2.5,,,\n8,csv,2.5,,,\n")
    assert shop.prices()[8][0] == "csv"


def test_tokens_tell_how_far_their_records_are(shop: Shop) -> None:
    token = shop.pipeline.input_json("PRICE", {"part": 9, "price": 1}, wait=False)
    shop.pipeline.wait_for_token(token)
    assert shop.pipeline.completion_token_status(token) is CompletionTokenStatus.COMPLETE
    assert isinstance(shop.feldera.completion_status(shop.name, token)["step"], int)
    assert shop.pipeline.input_json("PRICE", [], wait=True)


def test_bad_rows_are_named_and_the_token_is_for_the_good_ones(shop: Shop) -> None:
    body = '{"insert": {"part": 20, "price": 1}}\nnonsense\n{"insert": {"part": "x", "price": 1}}\n'
    answer = shop.push(body, format="json")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "ParseErrors")
    details = answer.json()["details"]
    assert details["num_errors"] == 2
    assert [each["event_number"] for each in details["errors"]] == [2, 3]
    shop.wait(details["token"])
    assert 20 in shop.prices()
    whole = [{"part": 21, "price": 1}, {"part": "x", "price": 1}]
    with pytest.raises(FelderaAPIError) as refused:
        shop.pipeline.input_json("PRICE", whole)
    assert (refused.value.error_code, refused.value.status_code) == ("ParseErrors", 400)
    shop.wait(shop.push(json.dumps([]), format="json").json()["token"])
    assert 21 not in shop.prices()


def test_what_will_never_arrive_raises_at_once(shop: Shop) -> None:
    with pytest.raises(FelderaAPIError) as died:
        shop.pipeline.input_json("PRICE", {"part": 30, "price": -1})
    assert (died.value.error_code, died.value.status_code) == ("RecordsDeadLettered", 422)
    for token in ("nonsense", "wb1." + "A" * 60):
        with pytest.raises(FelderaAPIError) as refused:
            shop.wait(token)
        assert (refused.value.error_code, refused.value.status_code) == ("InvalidParam", 400)


def test_a_token_of_another_pipeline_says_nothing(shop: Shop, client: Client) -> None:
    other = f"shop_{uuid.uuid4().hex[:8]}"
    stopped = MANIFEST.format(name=other).replace("inputs:", "state: stopped\ninputs:", 1)
    client.operation(client.apply(stopped).id, wait_s=WAIT_S)
    token = client.token_for(other, input="price").token
    with pytest.raises(FelderaAPIError) as refused:
        shop.wait(token)
    assert refused.value.error_code == "InvalidParam"
    client.delete(other)


def test_a_pipeline_is_stopped_and_started_and_then_has_caught_up(shop: Shop) -> None:
    shop.pipeline.stop(force=True)
    assert shop.pipeline.status() == PipelineStatus.STOPPED
    token = shop.pipeline.input_json("PRICE", {"part": 40, "price": 1}, wait=False)
    assert shop.pipeline.completion_token_status(token) is CompletionTokenStatus.IN_PROGRESS
    assert not shop.pipeline.is_complete()
    shop.pipeline.clear_storage()
    shop.pipeline.start()
    shop.pipeline.wait_for_completion(timeout_s=WAIT_S)
    assert 40 in shop.prices()
    metrics = shop.pipeline.stats().global_metrics
    assert metrics.total_completed_records == metrics.total_input_records


def test_other_routes_say_that_they_are_not_here_and_what_is(shop: Shop) -> None:
    for method, path, way in (
        ("GET", "/query?sql=SELECT+1", "tables"),
        ("PATCH", "", "waybill convert"),
        ("GET", "/nothing", "/v1"),
    ):
        answer = shop.http.request(method, f"{shop.http.base_url}".rstrip("/") + path)
        assert (answer.status_code, answer.json()["error_code"]) == (501, "NotImplemented"), path
        assert way in answer.json()["message"]
