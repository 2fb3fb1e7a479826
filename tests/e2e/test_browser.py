"""The console in a real browser, on the whole stack: what a person sees and does there."""

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browsing import STEP_MS, WAIT_MS, hindrances, needs_browser, visiting
from e2e.faults import kill, process_of
from e2e.shown import WAIT_S
from e2e.two_stages import HOSTILE, TwoStages, row_of
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill_local.stack import StackState

pytestmark = needs_browser


@pytest.fixture(scope="module")
def shown(client: Client) -> Iterator[TwoStages]:
    made = TwoStages(client, f"seen-{uuid.uuid4().hex[:8]}")
    made.apply()
    yield made
    client.delete(made.name)


@pytest.fixture
def running(shown: TwoStages) -> TwoStages:
    """Tests stop it, and each ends all that it did not find."""
    done = shown.client.operation(shown.client.start(shown.name).id, wait_s=WAIT_S)
    assert done.state == "done", done.errors
    shown.client.wait_pipeline(shown.name, timeout_s=WAIT_S)
    return shown


def test_a_pipeline_is_made_and_a_record_followed_until_its_token_is_green(
    client: Client, page: Page
) -> None:
    made = TwoStages(client, f"made-{uuid.uuid4().hex[:8]}")
    page.goto("/apply")
    page.get_by_label("Manifest").fill(made.manifest())
    expect(page.get_by_text("It can be applied.")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Apply", exact=True).click()
    page.wait_for_url(f"**/p/{made.name}", timeout=WAIT_MS)
    expect(page.locator("h1")).to_have_text(made.name)
    record = page.get_by_label("Record, as JSON")
    expect(record).to_have_value('{ "order_id": 1, "customer": "ada", "amount": 1 }')
    record.fill('{"order_id": 1, "customer": "ada", "amount": 12}')
    page.get_by_role("button", name="Send, and follow its token").click()
    page.wait_for_url("**/t/wb1.*")
    expect(page.locator(".outcome")).to_have_text("complete", timeout=WAIT_MS)
    expect(page.locator(".token")).to_have_attribute("data-tone", "good")
    expect(page.locator(".row.stage .who")).to_have_text(["first", "second"])
    expect(page.locator(".row.sink .said")).to_contain_text(["visible", "visible"])
    snapshot = client.outcome(page.url.rpartition("/")[2]).iceberg_snapshots["lake"]
    expect(page.get_by_text(f"snapshot_id={snapshot}")).to_be_visible()
    expect(page.get_by_text(f"VERSION AS OF {snapshot}")).to_be_visible()


def test_a_token_is_followed_live_through_two_stages(page: Page, running: TwoStages) -> None:
    stopped = running.client.operation(running.client.stop(running.name).id, wait_s=WAIT_S)
    assert stopped.state == "done", stopped.errors
    page.goto(f"/t/{running.send(20)}")
    expect(page.locator(".outcome")).to_have_text("in progress")
    expect(page.get_by_text("first is blocked: the pipeline is stopped")).to_be_visible()
    expect(page.locator(".bar.wait:visible")).to_have_count(2)
    running.client.start(running.name)
    expect(page.locator(".outcome")).to_have_text("complete", timeout=WAIT_MS)
    expect(page.locator(".bar.work:visible")).to_have_count(2)
    expect(page.locator("#news")).to_contain_text("token: complete")


def test_a_driver_that_is_killed_is_seen_and_seen_to_recover(
    page: Page, stack: StackState, running: TwoStages
) -> None:
    page.goto("/")
    row = page.locator(row_of(page, running.name))
    expect(row.locator(".phase")).to_have_text("Running")
    expect(row).to_have_attribute("data-tone", "good")
    page.evaluate(
        """selector => {
            window.seen = [];
            const row = document.querySelector(selector);
            const look = () => window.seen.push(row.innerText + ' ' + row.dataset.tone);
            new MutationObserver(look).observe(row, {subtree: true, childList: true,
                attributes: true, characterData: true});
        }""",
        row_of(page, running.name),
    )
    kill(drivers_of(stack, str(running.client.pipeline(running.name).uid)))
    seen = "window.seen.some(told => /Recovering|Starting/.test(told))"
    eventually(lambda: page.evaluate(seen), within_s=WAIT_S)
    expect(row.locator(".phase")).to_have_text("Running", timeout=WAIT_MS)
    told = " ".join(page.evaluate("window.seen"))
    assert re.search("attempt|driver|ended|starts again", told), told
    page.goto(f"/p/{running.name}")
    expect(page.locator(".events")).to_contain_text("Recovering")


def test_a_dead_letter_is_looked_at_and_sent_again(page: Page, running: TwoStages) -> None:
    record = {"order_id": 1, "customer": HOSTILE, "amount": 3}
    orders = [record, {**record, "amount": 30}]
    token = str(running.client.send(running.name, "orders", orders).token)
    assert running.client.wait(token, timeout_s=WAIT_S).kind == "dead_lettered"
    page.goto(f"/t/{token}")
    expect(page.locator(".outcome")).to_have_text("dead lettered")
    expect(page.locator(".lead")).to_contain_text("1 dead, the rest visible after")
    expect(page.locator(".row.sink .said")).to_contain_text(["the rest visible"] * 2)
    page.locator(".dead a").click()
    letter = page.locator(".letter")
    expect(letter).to_contain_text("rule enough")
    expect(letter.locator(".json")).to_contain_text(HOSTILE.replace('"', '\\"'))
    assert hindrances(page) == []
    running.apply(least=1)
    page.goto(f"/p/{running.name}")
    page.get_by_role("link", name="About 1 dead letter").click()
    group = page.locator(".groups li").filter(has_text="rule enough in stage first")
    expect(group).to_contain_text("1 × ")
    group.get_by_role("button", name="Replay this group").click()
    expect(page.locator("dialog")).to_contain_text("Only these: 1 × ")
    page.get_by_role("button", name="Replay", exact=True).last.click()
    page.get_by_role("link", name="Follow their token").click()
    expect(page.locator(".outcome")).to_have_text("complete", timeout=WAIT_MS)
    page.goto(f"/t/{token}")
    expect(page.locator(".dead")).to_contain_text("Replayed by")
    assert page.evaluate("window.hurt") is None


def test_a_bad_edit_is_refused_at_its_line(page: Page, running: TwoStages) -> None:
    before = running.client.pipeline(running.name)
    page.goto(f"/apply?pipeline={running.name}")
    editor = page.get_by_label("Manifest")
    expect(editor).to_have_value(str(before.manifest))
    editor.fill(running.manifest().replace("FROM inner", "FROM iner"))
    expect(page.locator(".errors")).to_contain_text("iner", timeout=WAIT_MS)
    line = (
        running.manifest()
        .split("\n")
        .index(next(each for each in running.manifest().split("\n") if "FROM inner" in each))
    )
    expect(page.locator(".lines [data-tone=bad]")).to_have_text(str(line + 1))
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    editor.fill(running.manifest(least=7))
    expect(page.locator(".changes")).to_contain_text("enough", timeout=WAIT_MS)
    assert running.client.pipeline(running.name).generation == before.generation


def test_a_copied_manifest_asks_before_it_writes_where_another_pipeline_does(
    page: Page, running: TwoStages, client: Client
) -> None:
    copy = f"{running.name}-copy"
    text = running.manifest().replace(f"name: {running.name}", f"name: {copy}\nstate: stopped", 1)
    page.goto("/apply")
    page.get_by_label("Manifest").fill(text)
    of_other = f"of pipeline '{running.name}', too"
    warned = page.locator(".warning").filter(has_text=of_other)
    expect(warned).to_have_count(2, timeout=WAIT_MS)
    button = page.get_by_role("button", name="Apply", exact=True)
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(of_other, timeout=WAIT_MS)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".errors li")).to_contain_text([of_other, of_other])
    assert copy not in [each.name for each in client.pipelines()]
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Apply it").click()
    page.wait_for_url(f"**/p/{copy}", timeout=WAIT_MS)
    client.delete(copy)


def test_it_is_used_with_the_keyboard_alone(page: Page, running: TwoStages) -> None:
    page.goto("/")
    expect(page.locator(row_of(page, running.name))).to_be_visible()
    assert running.client.wait(running.send(12), timeout_s=WAIT_S).kind == "complete"
    page.keyboard.press("/")
    page.keyboard.type(f"{running.name} running")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Tab")
    page.locator("#main").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"a[href='/p/{running.name}']")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/p/{running.name}")
    node = page.locator(".node.stage").first
    node.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**?stage=first")
    expect(page.locator(".panel")).to_contain_text("Stage first")
    expect(page.locator(".panel tbody tr").last).to_contain_text(f"{running.name}.in 0: ")
    page.get_by_role("button", name="Show all of 30 days").press("Enter")
    kept = page.get_by_role("region", name="batches of 30 days").locator("tbody tr")
    expect(kept.first).to_contain_text(f"{running.name}.in 0: ")
    page.locator("#main").focus()
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url(re.compile(r"/$"))
    assert hindrances(page) == []


def test_what_has_changed_since_an_earlier_generation_is_shown(
    page: Page, running: TwoStages, client: Client
) -> None:
    running.apply()
    before = client.pipeline(running.name).generation
    running.apply(least=9)
    page.goto(f"/p/{running.name}")
    page.get_by_text("Manifest", exact=True).click()
    expect(page.locator("details pre")).to_contain_text("amount >= 9")
    page.get_by_label("What has changed since").select_option(str(before))
    (gone, come) = (page.locator(f"details pre {name}") for name in ("del", "ins"))
    expect(gone).to_have_text(re.compile(r"^- .*amount >= 10"))
    expect(come).to_have_text(re.compile(r"^\+ .*amount >= 9"))
    running.apply()
    expect(page.locator("details pre ins")).to_have_count(0)
    assert hindrances(page) == []


def test_the_log_of_the_driver_is_shown_when_somebody_asks_for_it(
    page: Page, running: TwoStages, client: Client
) -> None:
    assert client.outcome(running.send(12)).kind
    page.goto(f"/p/{running.name}?stage=first")
    page.get_by_role("button", name="Show its log").click()
    expect(page.locator(".panel .log")).to_contain_text("waybill_spark.")
    told = client.logs(running.name, lines=1)
    page.get_by_role("button", name="Look again").click()
    assert len(told) == 1
    assert hindrances(page) == []


def test_stopping_and_deleting_ask_and_say_what_is_lost(
    browser: Browser, stack: StackState, client: Client, page: Page
) -> None:
    made = TwoStages(client, f"gone-{uuid.uuid4().hex[:8]}")
    made.apply()
    with visiting(browser, stack.url) as looking:
        looking.goto(f"/p/{made.name}")
        page.goto(f"/p/{made.name}")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".pipeline .phase")).to_have_text("Stopped", timeout=WAIT_MS)
        expect(page.locator(".pipeline > .why")).to_contain_text("it is stopped")
        expect(page.locator(".runs tbody tr")).to_contain_text(["stopped"])
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("dialog")).to_contain_text("cannot be undone")
        page.get_by_role("button", name="Cancel").click()
        assert client.pipeline(made.name).desired == "stopped"
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete it").click()
        page.wait_for_url(re.compile(r"/$"), timeout=WAIT_MS)
        expect(page.locator(row_of(page, made.name))).to_have_count(0)
        expect(looking.locator(".phase")).to_have_text("Deleted")
        expect(looking.locator(".pipeline > .why")).to_contain_text("It was deleted")
        assert looking.get_by_role("button", name="Start").count() == 0


def test_without_status_it_says_so_and_comes_back_by_itself(
    page: Page, stack: StackState, running: TwoStages
) -> None:
    page.goto("/")
    row = page.locator(row_of(page, running.name))
    expect(row).to_be_visible()
    status = process_of(stack, "status")
    status.suspend()
    try:
        expect(page.locator("body")).to_have_attribute("data-stale", "", timeout=WAIT_MS)
        expect(row).to_be_visible()
    finally:
        status.resume()
    kill([process_of(stack, "status")])
    expect(page.locator("#banner")).to_contain_text("tried again by itself", timeout=WAIT_MS)
    expect(page.locator("#banner")).to_be_hidden(timeout=WAIT_MS)
    expect(page.locator("body")).not_to_have_attribute("data-stale", "", timeout=STEP_MS)


@pytest.mark.parametrize("size", [(360, 740), (3840, 2160)], ids=["narrow", "4K"])
def test_each_view_fits_the_screen_and_hinders_nobody(
    browser: Browser, stack: StackState, running: TwoStages, size: tuple[int, int]
) -> None:
    token = running.send(30)
    running.client.wait(token, timeout_s=WAIT_S)
    paths = ("/", f"/p/{running.name}?stage=first", f"/t/{token}", "/t", "/apply")
    with visiting(browser, stack.url, size=size) as page:
        for path in paths:
            page.goto(path)
            expect(page.locator("h1")).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{path} is {wide} pixels too wide"
            assert hindrances(page) == [], path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/t/wb1.nothing", "no such token"),
        ("/p/nobody", "there is no pipeline 'nobody'"),
        ("/p/nobody/dead-letters", "there is no pipeline 'nobody'"),
    ],
)
def test_what_is_not_there_is_said_in_words(page: Page, path: str, said: str) -> None:
    page.goto(path)
    expect(page.locator(".trouble")).to_contain_text(said)
