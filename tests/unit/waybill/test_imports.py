"""What `import waybill` brings in: a Spark driver that uses `waybill_spark` pays for no HTTP."""

import subprocess
import sys

import pytest

import waybill
from waybill.cli.commands import PLACES

HEAVY = (
    "asyncio", "httpx2", "typer", "rich",
    "pyspark", "confluent_kafka", "waybill_shared", "waybill_local",
)  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import waybill", ()),
        ("from waybill import Client", ("httpx2",)),
        ("import waybill.cli.main", ("typer",)),
        ("from waybill.cli.render import talk; talk('a plain line')", ("typer",)),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(
    statement: str, allowed: tuple[str, ...]
) -> None:
    code = f"{statement}; import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == list(allowed)


@pytest.mark.parametrize(
    ("command", "own"),
    [("send", {"send"}), ("dlq", {"dlq"}), ("env", {"stack"}), ("nonsense", set[str]())],
)
def test_a_command_imports_no_other_command(command: str, own: set[str]) -> None:
    code = f"""
import atexit, sys
from waybill.cli.main import app
atexit.register(lambda: print(*[each for each in sys.modules if each.startswith("waybill.cli.")]))
app(["{command}", "--help"])
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
    modules = {place.partition(":")[0] for place in PLACES.values()}
    found = {each.removeprefix("waybill.cli.") for each in done.stdout.split()}
    assert found & modules - {"contexts"} == own  # a context is what every command may name


def test_every_public_name_is_there() -> None:
    assert all(hasattr(waybill, name) for name in waybill.__all__)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'client_of'"):
        getattr(waybill, "client_of")  # noqa: B009 - an unknown name is what is tested
