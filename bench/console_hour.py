"""An hour of events in a page whose clock is turned: what it keeps, and what it gives back.

Files and pipelines come from status. The stream of events and the figures are made in the page,
because Kafka does not tell an hour in minutes: 50 commits a second, by the clock of the page.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, CDPSession, Page, expect

from browsing import WAIT_MS, visiting
from e2e.waiting import eventually

MINUTES: Final = 60
STEP_S: Final = 2
EVENTS_S: Final = 50
REPORT_MINUTES: Final = 10
MOVE_MINUTES: Final = 3
SHOWN: Final = "pipeline-003"
BUSY: Final = 10  # pipelines that commit

MADE: Final = Path(__file__).with_suffix(".js")


def an_hour(browser: Browser, url: str, uids: Sequence[str]) -> None:
    """Writes what the page has on its heap, as the hour goes on."""
    with visiting(browser, url) as page:
        given = json.dumps({"uids": list(uids), "phaseEvery": EVENTS_S, "busy": BUSY})
        page.clock.install()
        page.add_init_script(MADE.read_text().replace("GIVEN;", f"{given};"))
        page.goto(f"/p/{SHOWN}?stage=load")
        expect(page.locator(".panel")).to_be_visible(timeout=WAIT_MS)
        page.clock.pause_at(page.evaluate("Date.now()") / 1_000 + 1)
        session = page.context.new_cdp_session(page)
        for minute in minutes(page):
            if minute % REPORT_MINUTES == 0:
                sys.stdout.write(f"after {minute} minutes: {held(page, session)}\n")
                sys.stdout.flush()
            if minute % MOVE_MINUTES == 1:
                move(page)


def minutes(page: Page) -> Iterator[int]:
    yield 0
    for minute in range(1, MINUTES + 1):
        for _ in range(60 // STEP_S):
            eventually(lambda: page.evaluate("hour.stream !== null"))
            page.evaluate(f"hour.tell({STEP_S * EVENTS_S})")
            page.clock.run_for(STEP_S * 1_000)
            eventually(lambda: page.evaluate("hour.open === 0"))
        yield minute


def move(page: Page) -> None:
    """To all pipelines, to where a token is asked for, and back: what was left must be let go."""
    page.get_by_role("link", name="Pipelines").click()
    expect(page.locator("tbody tr").nth(400)).to_be_attached()
    page.get_by_role("link", name="Token", exact=True).click()
    expect(page.get_by_role("heading", name="Where is it?")).to_be_visible()
    page.go_back()
    page.locator(f"a[href='/p/{SHOWN}']").click()
    page.locator(".node.stage").click()
    expect(page.locator(".panel tbody tr").first).to_be_visible()


def held(page: Page, session: CDPSession) -> str:
    session.send("HeapProfiler.collectGarbage")
    used = float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6
    counted = session.send("Memory.getDOMCounters")
    events = page.evaluate("hour.events")
    nodes, listeners = counted["nodes"], counted["jsEventListeners"]
    return f"{events} events, heap {used:.2f} MB, {nodes} nodes, {listeners} listeners"
