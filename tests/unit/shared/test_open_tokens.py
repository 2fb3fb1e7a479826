"""What is open without a key where that is wanted, and to which web pages."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import APIRouter, Request
from fastapi.testclient import TestClient

from waybill_shared.access.api_keys import add_key
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.routes import Scope
from waybill_shared.http.app import caller, create_app
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.settings.service import ServiceSettings, read_settings

ORIGIN = "https://shop.example"


def router() -> APIRouter:
    made = APIRouter()

    @made.get("/v1/tokens/{t}")
    async def token(request: Request, t: str) -> dict[str, object]:
        return {"scopes": sorted(caller(request).scopes)}

    @made.get("/v1/pipelines")
    async def pipelines() -> dict[str, str]:
        return {}

    return made


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    file = tmp_path / "keys.json"
    add_key(file, frozenset(Scope), env="test", now=datetime(2026, 11, 21, tzinfo=UTC))
    keys = KeysInForce(file, SystemClock())
    app = create_app("status", [router()], Health(), keys=keys, open_tokens=True, origins=(ORIGIN,))
    with TestClient(app) as client:
        yield client


def test_a_token_is_enough_to_ask_for_it_and_for_nothing_else(client: TestClient) -> None:
    assert client.get("/v1/tokens/x").json() == {"scopes": []}
    assert client.get("/v1/pipelines").status_code == 401
    wrong = client.get("/v1/tokens/x", headers={"Authorization": "Bearer wb_wrong"})
    assert wrong.status_code == 401


def test_pages_of_the_listed_origins_alone_may_ask(client: TestClient) -> None:
    asked = {
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    for origin, status in ((ORIGIN, 200), ("https://other.example", 400)):
        answer = client.options("/v1/pipelines", headers={"Origin": origin, **asked})
        assert answer.status_code == status
        allowed = answer.headers.get("access-control-allow-origin")
        assert allowed == (ORIGIN if status == 200 else None)
    told = client.get("/v1/tokens/x", headers={"Origin": ORIGIN})
    assert told.headers["access-control-allow-origin"] == ORIGIN
    assert "Location" in told.headers["access-control-expose-headers"]


def test_without_keys_a_page_of_another_site_changes_nothing() -> None:
    made = router()

    @made.post("/v1/tokens")
    async def write() -> dict[str, str]:
        return {}

    app = create_app("status", [made], Health(), origins=(ORIGIN,))
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        for origin, status in (
            ("https://evil.example", 403),
            ("null", 403),
            ("http://127.0.0.1:9", 403),
            ("http://127.0.0.1:8080", 200),
            (ORIGIN, 200),
        ):
            assert client.post("/v1/tokens", headers={"Origin": origin}).status_code == status
        assert client.post("/v1/tokens").status_code == 200
        assert client.get("/v1/pipelines", headers={"Origin": "https://evil.example"}).is_success


@pytest.mark.parametrize("text", ["*", "shop.example", "https://shop.example/", "https://a,b"])
def test_what_is_no_origin_is_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_CORS_ORIGINS", text)
    with pytest.raises(UserError, match=r"WAYBILL_CORS_ORIGINS.*is no origin"):
        read_settings(OfService)


def test_origins_are_listed_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_CORS_ORIGINS", "https://a.example, http://localhost:3000")
    assert read_settings(OfService).cors_origins == ("https://a.example", "http://localhost:3000")


class OfService(ServiceSettings):
    """As each service has them."""
