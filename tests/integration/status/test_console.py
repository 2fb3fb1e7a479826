"""The console in a real browser, over real processes that ask for keys."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Browser, Page, Route, expect

from browsing import browsing, hindrances, needs_browser, visiting
from integration.conftest import StartService, Surroundings
from integration.status.tracker import Tracker, record_pipeline, slot_of
from waybill_shared.access.api_keys import add_key
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.slots import Keys

pytestmark = needs_browser

TAG = "of-the-console"
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
    uid = record_pipeline(surroundings, tag=TAG)
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
        expect(page.locator(".runs .foot")).to_contain_text("No run in the last 30 days.")
        assert page.get_by_text("Other ways").count() == 0
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


def test_pipelines_are_found_by_their_tag(
    browser: Browser, url: str, keys: dict[frozenset[Scope], str], name: str
) -> None:
    with visiting(browser, url) as page:
        page.goto(f"/?tag={TAG}")
        enter(page, keys[READER])
        expect(page.locator("tbody th a")).to_have_text([name])
        page.get_by_label("Tags, separated by commas").fill(f"{TAG}, no-such-tag")
        page.keyboard.press("Enter")
        expect(page.get_by_text(re.compile("^no pipeline of .* fits$"))).to_be_visible()
        assert page.url.endswith("/?tag=of-the-console%2C+no-such-tag")
        page.get_by_role("button", name="Show all").click()
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()


class Runs:
    """Answers of a pipeline with three runs. The first cannot be had at first, and the second page
    of the others is empty."""

    def __init__(self) -> None:
        self.pages: list[dict[str, object]] = [
            {"items": [run_of(3, end=None)], "next_cursor": "a"},
            {"items": [], "next_cursor": "b"},
            {"items": [run_of(1, end="failed"), run_of(2, end="stopped")], "next_cursor": None},
        ]
        self.refused = False

    def answer(self, route: Route) -> None:
        if not self.refused:
            self.refused = True
            route.fulfill(status=503, json={"detail": "what happened is still being read"})
            return
        cursor = re.search(r"cursor=(\w)", route.request.url)
        page = self.pages["?ab".index(cursor[1]) if cursor else 0]
        route.fulfill(json={**page, "gap": None})


def run_of(number: int, *, end: str | None) -> dict[str, object]:
    error = {"domain": "user", "message": "no such table", "hint": "create it"}
    return {
        "id": f"run-{number}",
        "run": number,
        "generation": 1,
        "began": f"2026-11-21T0{number}:00:00Z",
        "started_by": "ada",
        "attempt": 0,
        "phase": "Running",
        "ended": None if end is None else f"2026-11-21T0{number}:30:00Z",
        "end": end,
        "reason": end and "to be stopped",
        "ended_by": end and "grace",
        "error": error if end == "failed" else None,
    }


def test_older_runs_are_shown_when_somebody_asks_for_them(
    browser: Browser, url: str, keys: dict[frozenset[Scope], str], name: str
) -> None:
    with visiting(browser, url) as page:
        page.route("**/runs?*", Runs().answer)
        page.goto(f"/p/{name}")
        enter(page, keys[READER])
        runs = page.locator(".runs")
        expect(runs.locator(".trouble")).to_contain_text("still being read")
        runs.get_by_role("button", name="Try again").click()
        expect(runs.locator("tbody th")).to_have_text(["3"])
        expect(runs.locator(".trouble")).to_have_count(0)
        runs.get_by_role("button", name="Show older runs").press("Enter")
        expect(runs.locator("tbody th")).to_have_text(["3", "2", "1"])
        expect(runs.locator(".because")).to_have_text(
            ["", "to be stopped, by grace", re.compile("no such table — create it")]
        )
        foot = "3 runs shown. These are all of the last 30 days."
        expect(page.get_by_text(foot).and_(page.locator(".runs .quiet"))).to_be_focused()
        assert hindrances(page) == []
