"""The console's page and files: where they are, how they are kept, what they may do."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from waybill_shared.access.api_keys import add_key
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.routes import Scope, route_for
from waybill_shared.http.app import create_app
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_status.adapters.http.console import ADDRESSES, TYPES, console_router, read_console
from waybill_status.adapters.http.operations import key_router

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "console"
PACKAGED = ROOT / "services/status/src/waybill_status/console"
BYTES_MAX = 205_000


@pytest.fixture
def pages() -> TestClient:
    return local_client(create_app("status", [console_router()], Health()))


def test_the_package_has_each_file_of_the_console() -> None:
    assert {f.name for f in PACKAGED.iterdir()} == {f.name for f in given()}
    for file in PACKAGED.iterdir():
        assert file.resolve() == (SOURCES / file.name).resolve(), file


def test_it_stays_small() -> None:
    assert sum(file.stat().st_size for file in given()) < BYTES_MAX


def given() -> list[Path]:
    """To browsers: not the types that only a check reads."""
    return [file for file in SOURCES.iterdir() if not file.name.endswith(".d.ts")]


@pytest.mark.parametrize("path", ADDRESSES)
def test_each_address_has_the_same_page_and_the_gateway_knows_it(
    pages: TestClient, path: str
) -> None:
    address = path.replace("{p}", "orders").replace("{t}", "wb1.x")
    answer = pages.get(address)
    assert answer.status_code == 200
    assert answer.content == read_console().page
    assert answer.headers["cache-control"] == "no-cache"
    route = route_for("GET", address)
    assert route is not None
    assert route.service == "status"


def test_files_are_kept_for_good_under_the_hash_of_all(pages: TestClient) -> None:
    named = re.findall(r'(?:src|href)="(/console/[^"]+)"', pages.get("/").text)
    modules = [file.name for file in given() if file.suffix == ".js"]
    assert len(named) == 3 + len(modules)
    assert {*modules} <= {place.rpartition("/")[2] for place in named}
    for place in named:
        answer = pages.get(place)
        assert answer.status_code == 200, place
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"] == TYPES[place.rpartition(".")[2]]
        old = pages.get(re.sub(r"/[0-9a-f]{16}/", "/0123456789abcdef/", place))
        assert (old.status_code, old.json()["hint"]) == (404, "load the page again")
    assert pages.get(f"/console/{read_console().version}/nothing.js").status_code == 404


def test_no_page_runs_what_is_not_ours(pages: TestClient) -> None:
    for place in ("/", re.findall(r'src="([^"]+)"', pages.get("/").text)[0]):
        policy = pages.get(place).headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert not any("unsafe" in each or "http" in each for each in policy)
    text = pages.get("/").text
    assert "style=" not in text
    scripts = re.findall(r"<script.*?</script>", text)
    assert scripts == re.findall(r"<script[^>]*></script>", text)


def test_nothing_in_it_makes_html_of_text() -> None:
    told = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function")
    assert [f.name for f in SOURCES.iterdir() if told.search(f.read_text("utf-8"))] == []


def test_pages_need_no_key_and_a_key_is_told_what_it_may_do(tmp_path: Path) -> None:
    file = tmp_path / "api_keys.json"
    now = datetime(2026, 11, 21, tzinfo=UTC)
    key, _ = add_key(file, frozenset({Scope.READ}), env="test", now=now)
    keys = KeysInForce(file, SystemClock())
    client = local_client(
        create_app("status", [console_router(), key_router()], Health(), keys=keys)
    )
    assert client.get("/").status_code == 200
    assert client.get("/v1/key").status_code == 401
    answer = client.get("/v1/key", headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["scopes"] == ["read"]
    open_to_all = local_client(create_app("status", [key_router()], Health()))
    assert open_to_all.get("/v1/key").json() == {"id": None, "scopes": ["admin", "read", "write"]}
