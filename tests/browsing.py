"""A real browser for tests: Chromium of the machine, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FOUND: Final = next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(
    FOUND is None, reason="there is no browser: install one, as with `apt-get install chromium`"
)
WIDE: Final = (1360, 900)
WAIT_MS: Final = 120_000.0  # for what Spark does
STEP_MS: Final = 30_000.0  # for what only the page and status do, on a busy machine
expect.set_options(timeout=STEP_MS)
SERIOUS: Final = {"serious", "critical"}


@contextmanager
def browsing() -> Iterator[Browser]:
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=flags)
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Browser, url: str, *, size: tuple[int, int] = WIDE) -> Iterator[Page]:
    """A tab of its own. No script of the page may fail, and none is kept from running."""
    width, height = size
    context = browser.new_context(base_url=url, viewport={"width": width, "height": height})
    context.set_default_timeout(STEP_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.extend(_refusals(message)))
    yield page
    context.close()
    assert faults == []


def _refusals(message: ConsoleMessage) -> list[str]:
    """Of the policy of the page; what the network refuses is told there as well, and meant."""
    return [message.text] if "Content Security Policy" in message.text else []


def hindrances(page: Page) -> list[str]:
    """What keeps people from using the page, as axe-core sees it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
