"""The example of Feldera's documentation: its script, its tables, and a file from a web server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from feldera import FelderaClient, Pipeline
from feldera.enums import CompletionTokenStatus
from feldera.rest.errors import FelderaAPIError
from pyiceberg.catalog.sql import SqlCatalog

from integration.ingress.files import FileServer, ServedFile, serving_files
from waybill import Client, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait

EXAMPLE = Path(__file__).parents[2] / "examples" / "supply-chain"
WAIT_S = 120.0


@pytest.fixture(scope="module")
def files() -> Iterator[FileServer]:
    with serving_files() as server:
        for file in (EXAMPLE / "files").iterdir():
            server.put(file.name, ServedFile(file.read_bytes()))
        yield server


@pytest.fixture(scope="module")
def supply_chain(client: Client, files: FileServer) -> Iterator[str]:
    manifest = (EXAMPLE / "supply-chain.yaml").read_text()
    assert "127.0.0.1:8000" in manifest
    manifest = manifest.replace("127.0.0.1:8000", f"127.0.0.1:{files.port}")
    assert client.operation(client.apply(manifest).id, wait_s=WAIT_S).errors == ()
    client.wait_pipeline("supply-chain", timeout_s=WAIT_S)
    yield "supply-chain"
    client.delete("supply-chain")


def test_the_script_says_that_both_are_complete_and_their_rows_are_there(
    supply_chain: str, stack: StackState, catalog: SqlCatalog
) -> None:
    ran = subprocess.run(
        ["sh", EXAMPLE / "example.sh", stack.url],
        check=False,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    answers = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert [answer["status"] for answer in answers] == ["complete", "complete"]
    table = catalog.load_table("supply_chain.price").scan().to_arrow().to_pylist()
    prices = {(row["part"], row["vendor"], int(row["price"])) for row in table}
    assert prices == {
        (1, 2, 10_000),
        (2, 1, 15_000),
        (3, 3, 9_000),
        (1, 1, 20_000),
        (2, 2, 30_000),
        (3, 3, 12_000),
    }
    (connector,) = next(
        each for each in Client(stack.url).pipeline(supply_chain).inputs if each.name == "price"
    ).connectors
    assert (connector.state, connector.rows, connector.dead) == ("done", 3, 0)


def test_what_is_null_is_refused_over_http_and_in_the_stage_alike(
    supply_chain: str, client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    """The table says NOT NULL; what goes straight into Kafka meets the stage alone."""
    url = f"{stack.url}/v0/pipelines/{supply_chain}/ingress/PRICE?format=json"
    refused = httpx2.post(url, content=b'{"insert": {"vendor": 1, "price": 2}}')
    assert (refused.status_code, refused.json()["error_code"]) == (400, "ParseErrors")
    (error,) = refused.json()["details"]["errors"]
    assert error["description"] == "part: is missing, and the column is NOT NULL"
    producer, value = make_producer(stack.kafka), b'{"part": null, "vendor": 1, "price": 2}'
    message = produce_and_wait(producer, "supply-chain.price", "", value)
    partition, offset = position_of(message)
    topic_id = kafka.identify(["supply-chain.price"])["supply-chain.price"].topic_id
    place = Position(
        topic="supply-chain.price", topic_id=topic_id, partition=partition, offset=offset
    )
    token = client.token_for(supply_chain, positions=[place]).token
    outcome = token.wait(WAIT_S)
    assert (outcome.kind, outcome.dead[0].reason) == ("dead_lettered", "malformed")


def test_feldera_client_takes_the_token_of_a_connector(
    supply_chain: str, stack: StackState
) -> None:
    pipeline = Pipeline.get(supply_chain, FelderaClient(stack.url))
    token = pipeline.generate_completion_token("PRICE", "tutorial-price-s3")
    pipeline.wait_for_token(token)
    assert pipeline.completion_token_status(token) is CompletionTokenStatus.COMPLETE
    stats = pipeline.input_connector_stats("PRICE", "tutorial-price-s3")
    assert stats.metrics.total_records == 3
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.generate_completion_token("PRICE", "tutorial-prices")
    assert (refused.value.error_code, refused.value.status_code) == ("UnknownInputEndpoint", 404)
