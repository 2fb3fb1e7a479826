"""A connector that can never be read is refused with the manifest, as a fetch would fail."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event

import pytest

from unit.ingress.fakes import MANIFEST
from unit.ingress.world import World
from waybill_ingress.adapters.files.download import FileFetcher
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_ingress.core.connectors.limits import FetchLimits
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.manifest.reading import read_manifest

Ask = Callable[[World, str], Awaitable[object]]
ASKS: list[Ask] = [
    lambda world, text: world.commands.apply(ANYONE, "orders", text, "r"),
    lambda world, text: world.commands.validate(ANYONE, text, "r"),
]
LINE = "    connectors:\n      - {{name: file, url: '{}'}}\n"


def fetcher(files: Path | None) -> FileFetcher:
    limits = FetchLimits(allowed=allowed(""), files=files, bytes_max=1_000, time_s=30)
    return FileFetcher(limits, None)


def with_file(url: str) -> str:
    head, key, rest = MANIFEST.partition("    schema:")
    assert key
    return head + LINE.format(url) + key + rest


def refused(ask: Ask, files: Path | None, url: str) -> Problem:
    with pytest.raises(UserError) as raised:
        asyncio.run(ask(World(fetcher=fetcher(files)), with_file(url)))  # type: ignore[arg-type]
    (problem,) = raised.value.problems
    return problem


@pytest.mark.parametrize("ask", ASKS, ids=["apply", "check"])
@pytest.mark.parametrize(
    ("folder", "url", "says"),
    [
        (None, "file:///data/a.json", "names no folder"),
        ("files", "file:///data/a.json", "not in the folder"),
        ("files", "file://{}/files/../a.json", "not in the folder"),
    ],
)
def test_a_file_that_can_never_be_read_is_refused_in_its_line(
    ask: Ask, folder: str | None, url: str, says: str, tmp_path: Path
) -> None:
    files, text = None if folder is None else tmp_path / folder, url.format(tmp_path)
    problem = refused(ask, files, text)
    with pytest.raises(FetchFailed) as later:
        fetcher(files).fetch(FileConnector(name="file", url=text), Event())
    assert problem.message == str(later.value)
    assert says in problem.message
    assert "docs/connectors.md" in problem.hint
    assert problem.path == "inputs.0.connectors.0.url"
    lines = with_file(text).splitlines()
    assert problem.line is not None
    assert problem.column is not None
    assert text in lines[problem.line - 1][problem.column - 1 :]


@pytest.mark.parametrize("ask", ASKS, ids=["apply", "check"])
def test_a_connection_that_is_not_there_is_refused_in_its_line(ask: Ask) -> None:
    text = with_file("s3://archive/a.json").replace("'}", "', connection: nowhere}")
    with pytest.raises(UserError) as raised:
        asyncio.run(ask(World(fetcher=fetcher(None)), text))  # type: ignore[arg-type]
    (problem,) = raised.value.problems
    assert problem.path == "inputs.0.connectors.0.connection"
    assert problem.line == text[: text.index("nowhere")].count("\n") + 1


def test_a_file_that_may_come_is_taken(tmp_path: Path) -> None:
    (connector,) = (
        read_manifest(with_file(f"file://{tmp_path}/later.json")).model.inputs[0].connectors
    )
    assert fetcher(tmp_path).fault(connector) is None
