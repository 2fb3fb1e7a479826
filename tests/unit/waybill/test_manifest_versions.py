"""The manifests that a pipeline has had: `client.manifests()` and `waybill get manifest`."""

import asyncio
from datetime import UTC, datetime

import pytest

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, ManifestVersion
from waybill.testing import Response, ScriptedServer

ITEMS = [
    {"generation": 5, "manifest": "name: orders # 5\n", "until": None},
    {"generation": 4, "manifest": "name: orders # 4\n", "until": "2026-11-21T09:00:00.000Z"},
    {"generation": 2, "manifest": "name: orders # 2\n", "until": "2026-11-20T09:00:00.000Z"},
]
PATH = "/v1/pipelines/orders/manifests"


def test_both_clients_read_them(server: ScriptedServer) -> None:
    server.answer("GET", PATH, Response(json={"items": ITEMS}))

    async def asked() -> tuple[ManifestVersion, ...]:
        async with AsyncClient(server.url) as client:
            return await client.manifests("orders")

    with Client(server.url) as client:
        versions = client.manifests("orders")
    assert versions == asyncio.run(asked())
    assert [each.generation for each in versions] == [5, 4, 2]
    assert versions[0].until is None
    assert versions[1].until == datetime(2026, 11, 21, 9, tzinfo=UTC)


@pytest.mark.parametrize(("generation", "found"), [(5, 5), (4, 4), (3, 4), (2, 2)])
def test_a_generation_is_printed_as_it_was_applied(
    server: ScriptedServer, command: Command, generation: int, found: int
) -> None:
    """Of a restart it is that of the next change."""
    server.answer("GET", PATH, Response(json={"items": ITEMS}))
    result = command("get", "manifest", "orders", "--generation", str(generation))
    assert result.stdout == f"name: orders # {found}\n"


@pytest.mark.parametrize("generation", [1, 6])
def test_one_that_is_not_kept_is_told_with_those_that_are(
    server: ScriptedServer, command: Command, generation: int
) -> None:
    server.answer("GET", PATH, Response(json={"items": ITEMS}))
    result = command("get", "manifest", "orders", "--generation", str(generation))
    assert result.exit_code == 1
    told = " ".join(result.stderr.split())
    assert f"no manifest of generation {generation} is kept; there are: 2, 4, 5" in told


def test_a_generation_is_of_a_manifest(command: Command) -> None:
    result = command("get", "orders", "--generation", "2")
    assert result.exit_code == 2
    assert "waybill get manifest NAME" in " ".join(result.stderr.split())
