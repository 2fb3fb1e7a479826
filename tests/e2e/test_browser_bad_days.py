"""The console in a real browser on bad days: far too much of something, wrong clocks, lost tokens.

The stack is real, and so is what is shown, but for what a test says of itself.
"""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from browsing import needs_browser, visiting
from e2e.shown import MANIFEST, WAIT_S, Small, named
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.clock import SystemClock

pytestmark = needs_browser

NARROW: Final = (360, 740)
LETTERS: Final = 10_000
PAGE_ROWS: Final = 100
VALUE: Final = 1_000_000
NODES_MAX: Final = 20_000  # of a value: Chromium lays them out in well under a second
STAGES: Final = 64


@pytest.fixture(scope="module")
def running(client: Client) -> Iterator[Small]:
    made = named(client, "bad")
    made.apply()
    yield made
    client.delete(made.name)


@pytest.fixture
def stopped(client: Client) -> Small:
    """Its records wait for ever."""
    made = named(client, "held")
    made.apply("stopped")
    return made


def too_wide(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


# Too much of something


def large_json() -> bytes:
    """As many small things as a value has room for: drawn at once they would be 250,000 numbers."""
    rows = [[number % 10 for number in range(500)] for _ in range(499)]
    record = {"order_id": 1, "amount": -1, "rows": rows}
    return json.dumps(record, separators=(",", ":")).encode().ljust(VALUE)


@pytest.fixture(scope="module")
def buried(client: Client, stack: StackState, running: Small) -> Small:
    """10,000 dead letters; the last two have 1 MB: one that is JSON, and one that is none."""
    producer = make_producer(stack.kafka, **{"message.max.bytes": 2 * VALUE})
    small = [b"{%d" % number for number in range(LETTERS - 2)]
    for values in (small, [large_json()], [b"x" * VALUE]):
        for value in values:
            producer.produce(f"{running.name}.in", value=value)
        producer.flush(WAIT_S)
        token = client.token_for(running.name, input="orders")
        assert client.wait(token, timeout_s=WAIT_S).kind == "dead_lettered"
    return running


def test_ten_thousand_dead_letters_come_a_page_at_a_time_and_can_be_filtered(
    page: Page, buried: Small
) -> None:
    page.goto(buried.dead_letters)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(PAGE_ROWS)
    expect(page.get_by_text(f"{PAGE_ROWS} of {LETTERS:,} shown")).to_be_visible()
    largest = page.locator(".groups li").first
    expect(largest).to_contain_text(f"malformed in stage load, from {buried.name}.in")
    expect(largest.get_by_role("button", name="Replay this group")).to_be_enabled()
    more = page.get_by_role("button", name="Show more")
    for pages in (2, 3):
        more.click()
        expect(rows).to_have_count(pages * PAGE_ROWS)
    page.get_by_label("Reason").select_option("violated")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("violated: positive")
    expect(more).to_be_hidden()
    page.get_by_label("Reason").select_option("malformed")
    expect(rows).to_have_count(PAGE_ROWS)
    page.goto("/")
    row = page.locator(f"tbody tr:has(a[href='/p/{buried.name}'])")
    expect(row.get_by_label(f"about {LETTERS} dead letters")).to_have_text("10K")


def test_a_token_of_ten_thousand_dead_letters_names_the_first(page: Page, buried: Small) -> None:
    token = buried.client.token_for(buried.name, input="orders").token
    page.goto(f"/t/{token}")
    expect(page.locator(".outcome")).to_have_text("dead lettered")
    expect(page.get_by_role("heading", name=f"Dead letters: about {LETTERS:,}")).to_be_visible()
    named = page.locator(".dead li")
    expect(named).to_have_count(PAGE_ROWS + 1)
    expect(named.last).to_have_text("and more")


def test_a_value_of_1_mb_that_is_no_json_is_cut_and_says_so(page: Page, buried: Small) -> None:
    page.goto(buried.dead_letters)
    page.locator("tbody th a").first.click()
    value = page.locator(".letter pre")
    expect(value).to_contain_text(re.compile(r"^x{100000}\n… 900000 characters more$"))


def test_a_value_of_1_mb_that_is_json_is_folded_and_can_be_unfolded(
    page: Page, buried: Small
) -> None:
    page.goto(f"{buried.dead_letters}?reason=violated")
    page.locator("tbody th a").first.click()
    json = page.locator(".letter .json")
    expect(json).to_contain_text("rows: [ 499 ]")
    assert page.evaluate("document.querySelectorAll('.letter *').length") < NODES_MAX
    rows = json.locator("details details").first
    rows.locator("summary").first.click()
    rows.locator("li summary").nth(7).click()
    expect(rows.locator("li li")).to_have_count(500)
    assert page.evaluate("document.querySelectorAll('.letter *').length") < NODES_MAX


@pytest.fixture
def long_named(client: Client) -> Iterator[Small]:
    made = Small(client, f"{'long' * 13}-x-{uuid.uuid4().hex[:8]}")
    assert len(made.name) == 63
    made.apply("stopped")
    yield made
    made.delete()


def test_a_name_of_63_characters_fits_a_phone(
    browser: Browser, stack: StackState, long_named: Small
) -> None:
    name, token = long_named.name, long_named.send()
    paths = {
        "/": f"a[href='/p/{name}']",
        f"/p/{name}?stage=load": ".panel pre",
        long_named.dead_letters: "text=No dead letters.",
        f"/apply?pipeline={name}": ".lines div >> nth=8",
        f"/t/{token}": ".row.sink",
        "/t": "form.ask:has(option)",
    }
    with visiting(browser, stack.url, size=NARROW) as page:
        for path, there in paths.items():
            page.goto(path)
            expect(page.locator(there).first).to_be_visible()
            assert too_wide(page) <= 0, f"{path} is {too_wide(page)} pixels too wide"
        page.goto(f"/p/{name}")
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("dialog")).to_contain_text(name)
        assert page.evaluate(
            "(box => box.scrollWidth <= box.clientWidth)(document.querySelector('dialog'))"
        )


def tree_of_stages(name: str) -> str:
    """Each stage reads what half its number wrote, so there are long ways and broad layers."""
    stages = []
    for number in range(STAGES):
        source = f"sink{number // 2}" if number else "orders"
        sink = f"{{name: sink{number}, kafka: {{topic: {name}.{number}, partitions: 1}}}}"
        stages.append(f"  - {{name: stage{number}, inputs: [{source}], sinks: [{sink}]}}\n")
    head, _, _ = MANIFEST.format(name=name, state="stopped").partition("  - name: load")
    return head + "".join(stages)


@pytest.fixture
def many_staged(client: Client) -> Iterator[Small]:
    made = named(client, "many")
    made.apply_text(tree_of_stages(made.name))
    yield made
    made.delete()


@pytest.mark.parametrize("size", [NARROW, (1360, 900)], ids=["narrow", "wide"])
def test_64_stages_are_drawn_apart_and_scrolled_in_a_box_of_their_own(
    browser: Browser, stack: StackState, many_staged: Small, size: tuple[int, int]
) -> None:
    with visiting(browser, stack.url, size=size) as page:
        page.goto(f"/p/{many_staged.name}")
        nodes = page.locator("waybill-graph .node")
        expect(nodes).to_have_count(2 * STAGES + 1)
        expect(page.locator("waybill-graph .node.stage")).to_have_count(STAGES)
        boxes = page.evaluate(
            """[...document.querySelectorAll('waybill-graph .node rect')].map(each => {
                const {left, right, top, bottom} = each.getBoundingClientRect();
                return {left, right, top, bottom};
            })"""
        )
        assert [pair for pair in pairs(boxes) if overlap(*pair)] == []
        assert too_wide(page) <= 0
        frame = page.get_by_role("region", name="graph")
        assert frame.evaluate("box => box.scrollWidth > box.clientWidth")
        last = max(range(len(boxes)), key=lambda at: boxes[at]["right"])
        nodes.nth(last).focus()
        page.keyboard.press("Enter")
        expect(page.locator(".panel")).to_contain_text("Stage stage")
        assert frame.evaluate("box => box.scrollLeft > 0")
        assert too_wide(page) <= 0


Box = dict[str, float]


def pairs(boxes: list[Box]) -> Iterator[tuple[Box, Box]]:
    return ((one, other) for at, one in enumerate(boxes) for other in boxes[:at])


def overlap(one: Box, other: Box) -> bool:
    beside = one["right"] <= other["left"] or other["right"] <= one["left"]
    return not beside and one["top"] < other["bottom"] and other["top"] < one["bottom"]


# A clock that is wrong

UNITS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0}


def seconds(text: str) -> float:
    """Of a duration as the page spells it."""
    found = re.findall(r"([\d.]+) (ms|s|min|h)\b", text)
    assert found, text
    return sum(float(number) * UNITS[unit] for number, unit in found)


@pytest.mark.parametrize("hours", [2, -2], ids=["ahead", "behind"])
def test_ages_are_by_the_clock_of_waybill(
    browser: Browser, stack: StackState, running: Small, stopped: Small, hours: int
) -> None:
    running.client.wait(running.send(), timeout_s=WAIT_S)
    with visiting(browser, stack.url) as page:
        page.clock.install(time=SystemClock().now_ms() / 1_000 + hours * 3_600)
        page.goto("/")
        row = page.locator(f"tbody tr:has(a[href='/p/{stopped.name}'])")
        oldest = row.locator("td").nth(4)
        expect(oldest).to_have_text("none")
        begun = SystemClock().now_ms()
        token = stopped.send()
        expect(oldest).to_have_text(re.compile(r"\d"))
        assert abs(page.evaluate("Date.now()") - begun - hours * 3_600_000) < 600_000

        def passed() -> float:
            return (SystemClock().now_ms() - begun) / 1_000

        eventually(lambda: 1 < seconds(oldest.inner_text()) <= passed() + 2)
        page.goto(f"/t/{token}")
        lead = page.locator(".lead")
        expect(lead).to_contain_text(" ago.")
        age = re.compile(r", ([^,]+) ago\.")
        eventually(lambda: 1 < seconds(age.findall(lead.inner_text())[0]) <= passed() + 2)
        ends = page.locator(".ends span").last
        eventually(lambda: 1 < seconds(ends.inner_text()) <= passed() + 2)
        page.goto(f"/p/{running.name}?stage=load")
        expect(page.locator(".panel tbody tr").first).to_be_visible()
        points = page.locator(".node.stage .spark")
        expect(points).to_have_attribute("points", re.compile(r"\d"))
        since = page.locator(".tools time").first.get_attribute("datetime")
        applied = running.client.pipeline(running.name).since
        assert applied is not None
        assert since is not None
        assert datetime.fromisoformat(since) == applied


# What the page waits for in vain


def test_without_events_a_token_is_followed_all_the_same(page: Page, stopped: Small) -> None:
    page.route("**/v1/events**", lambda route: route.abort())
    page.goto("/")
    banner = page.locator("#banner")
    expect(banner).to_contain_text("No events")
    jump = page.get_by_label("Go to a pipeline or token")
    jump.fill(stopped.send())
    jump.press("Enter")
    expect(page.locator(".outcome")).to_have_text("in progress")
    expect(banner).to_be_hidden()
    page.get_by_role("link", name="Pipelines").click()
    expect(banner).to_contain_text("No events")


def test_an_editor_that_is_emptied_waits_for_no_answer(page: Page) -> None:
    page.route("**/v1/validate", lambda _: None)
    page.goto("/apply")
    found = page.locator("#found")
    expect(found).to_have_attribute("data-busy", "")
    page.get_by_label("Manifest").fill("")
    expect(found).to_have_text("The manifest is empty.")
    expect(found).not_to_have_attribute("data-busy", "")
