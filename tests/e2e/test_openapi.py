"""Schemathesis reads the OpenAPI document of a service and sends what it allows, and what not.

Streams are not asked for: OpenAPI cannot tell of `Accept`, and without it each route answers once.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.conftest import Apply, Pipeline, order
from e2e.openapi_hooks import KNOWN
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.contract.routes import HTTP_SERVICES

TIMEOUT_S = 240.0
CONFIG = Path(__file__).with_name("schemathesis.toml")
HOOKS = Path(__file__).with_name("openapi_hooks.py")


@pytest.fixture(scope="module")
def running(apply_orders: Apply) -> Pipeline:
    """One of its own: what it is sent here would be too much in a table that others read."""
    return apply_orders()


@pytest.mark.parametrize("service", HTTP_SERVICES)
@pytest.mark.parametrize(
    "amount",
    [
        pytest.param(("--phases=fuzzing", "--max-examples=1"), id="some"),
        pytest.param(("--max-examples=8",), id="all"),
    ],
)
def test_each_answer_is_one_that_the_document_names(
    stack: StackState,
    client: Client,
    running: Pipeline,
    tmp_path: Path,
    service: str,
    amount: tuple[str, ...],
) -> None:
    known = {
        "PIPELINE": running.name,
        "INPUT": "orders",
        "TOPIC": running.topic,
        "TOKEN": client.send(running.name, "orders", [order(1)]).token,
        "ID": client.start(running.name).id,
    }
    names = {KNOWN + name: value for name, value in known.items()}
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        f"--config-file={CONFIG}",
        "--no-color",
        "run",
        *amount,
        f"http://127.0.0.1:{stack.ports[service]}/openapi.json",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **names, "SCHEMATHESIS_HOOKS": str(HOOKS)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
