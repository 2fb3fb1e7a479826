"""The first minutes in the console: from the page of an empty Waybill to a green token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browsing import WAIT_MS, browsing, hindrances, needs_browser, visiting
from integration.waiting import eventually
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState

pytestmark = [needs_browser, pytest.mark.timeout(400)]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StackState]:
    reports: list[stack.Report] = []
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    yield stack.up(tmp_path, reports.append, options=options, tied=True)
    stack.down(tmp_path, reports.append)


def test_an_empty_page_leads_to_a_record_that_has_arrived(state: StackState) -> None:
    with browsing() as browser, visiting(browser, state.url) as page:
        page.goto("/")
        expect(page.get_by_role("heading", name="make the first one")).to_be_visible()
        assert hindrances(page) == []
        page.get_by_role("button", name="Apply it").click()
        record = page.get_by_label("Record, as JSON")
        expect(record).to_have_value(
            '{ "order_id": 1, "customer": "ada", "amount": 12.5 }', timeout=WAIT_MS
        )
        page.get_by_role("button", name="Send, and follow its token").click()
        expect(page.locator(".outcome")).to_have_text("complete", timeout=WAIT_MS)
        page.keyboard.press("g")
        page.keyboard.press("p")
        expect(page.locator("tbody .phase")).to_have_text("Running")
        with Client(state.url) as client:
            (made,) = client.pipelines()
            eventually(lambda: [each.behind for each in client.flow()] == [0])
            client.delete(made.name)
        expect(page.get_by_role("heading", name="make the first one")).to_be_visible()
