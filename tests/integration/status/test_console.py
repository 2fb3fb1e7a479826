"""The console in a real browser, over real processes that ask for keys."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Browser, Page, expect

from browsing import browsing, needs_browser, visiting
from integration.conftest import StartService, Surroundings
from integration.status.tracker import Tracker, record_pipeline, slot_of
from waybill_shared.access.api_keys import add_key
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.slots import Keys

pytestmark = needs_browser

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


READER, ANYTHING = frozenset({Scope.READ}), frozenset(Scope)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api_keys") / "api_keys.json"


@pytest.fixture(scope="module")
def keys(file: Path) -> dict[frozenset[Scope], str]:
    """By what they may do."""
    return {each: add_key(file, each, env="test", now=NOW)[0] for each in (READER, ANYTHING)}


@pytest.fixture(scope="module")
def name(surroundings: Surroundings) -> str:
    """Of a pipeline that runs, as far as anybody can tell."""
    uid = record_pipeline(surroundings)
    client = redis.Redis.from_url(surroundings.redis)
    Tracker(client, Keys(surroundings.prefix), uid).write(slot_of(uid, reached=10))
    return f"orders-{uid[:8]}"


@pytest.fixture(scope="module")
def url(start_service: StartService, file: Path, keys: dict[frozenset[Scope], str]) -> str:
    assert keys
    return start_service("status", WAYBILL_API_KEYS_FILE=str(file))


def enter(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Use it").click()


def test_without_a_key_it_asks_for_one_and_keeps_it_in_this_tab_alone(
    browser: Browser, url: str, keys: dict[frozenset[Scope], str], name: str
) -> None:
    with visiting(browser, url) as page:
        page.goto("/")
        expect(page.locator("#banner")).to_contain_text("needs an API key")
        expect(page.get_by_label("API key")).to_be_focused()
        enter(page, keys[READER])
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
        expect(page.locator("#banner")).to_be_hidden()
        kept = page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")
        assert kept == ["", 0, 0]
        page.reload()
        expect(page.locator("#banner")).to_contain_text("needs an API key")


def test_only_what_the_key_may_do_is_shown(
    browser: Browser, url: str, keys: dict[frozenset[Scope], str], name: str
) -> None:
    with visiting(browser, url) as page:
        page.goto(f"/p/{name}")
        enter(page, keys[READER])
        expect(page.locator("h1")).to_have_text(name)
        expect(page.get_by_text("use a key with the scope write")).to_be_visible()
        assert page.get_by_role("button", name="Stop").count() == 0
        page.get_by_role("button", name="API key in use").click()
        enter(page, keys[ANYTHING])
        expect(page.get_by_role("button", name="Delete", exact=True)).to_be_visible()
        expect(page.get_by_label("Record, as JSON")).to_be_visible()


def test_a_key_that_was_mistyped_is_refused_in_words(browser: Browser, url: str) -> None:
    with visiting(browser, url) as page:
        page.goto("/")
        page.get_by_label("API key").fill("wb_test_00_00")
        page.get_by_role("button", name="Use it").click()
        expect(page.locator("#banner")).to_contain_text("mistyped, revoked or of another place")
